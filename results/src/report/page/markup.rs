//! HTML and SVG as text: elements that close what they open, and nothing unescaped between them.

/// Markup that grows from front to back.
#[derive(Debug, Default)]
pub(in crate::report) struct Markup {
    text: String,
}

/// Attributes of an element.
pub(in crate::report) type Attributes<'a> = &'a [(&'a str, &'a str)];

impl Markup {
    /// The text, from the document type on.
    pub fn finish(self) -> String {
        self.text
    }

    /// An element, and what `inner` puts into it.
    pub fn element(&mut self, name: &str, attributes: Attributes<'_>, inner: impl FnOnce(&mut Self)) {
        self.open(name, attributes);
        self.text.push('>');
        inner(self);
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
    }

    /// An element that holds nothing but text.
    pub fn leaf(&mut self, name: &str, attributes: Attributes<'_>, text: &str) {
        self.element(name, attributes, |markup| markup.text(text));
    }

    /// An element of HTML that never has an end: `meta`, `img`.
    pub fn void(&mut self, name: &str, attributes: Attributes<'_>) {
        self.open(name, attributes);
        self.text.push('>');
    }

    /// An empty element of SVG.
    pub fn shape(&mut self, name: &str, attributes: Attributes<'_>) {
        self.open(name, attributes);
        self.text.push_str("/>");
    }

    /// Text.
    pub fn text(&mut self, text: &str) {
        escape_into(&mut self.text, text);
    }

    /// What the program itself brings along: the document type, the style sheet.
    pub fn own(&mut self, text: &'static str) {
        self.text.push_str(text);
    }

    /// A line break of the source, where white space does not matter.
    pub fn line(&mut self) {
        self.text.push('\n');
    }

    fn open(&mut self, name: &str, attributes: Attributes<'_>) {
        self.text.push('<');
        self.text.push_str(name);
        for (key, value) in attributes {
            self.text.push(' ');
            self.text.push_str(key);
            self.text.push_str("=\"");
            escape_into(&mut self.text, value);
            self.text.push('"');
        }
    }
}

/// Appends text that means itself between tags and in quoted attributes. Characters that HTML does not allow, even by number, become
/// U+FFFD.
fn escape_into(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() || is_noncharacter(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

fn is_noncharacter(c: char) -> bool {
    let code = u32::from(c);
    (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_text_is_markup() {
        let mut markup = Markup::default();
        let nasty = "a<script>&\"'\u{0}\r\u{fffe}\u{85}\n]]>-->";
        markup.element("p", &[("title", nasty)], |p| {
            p.text(nasty);
            p.shape("path", &[("d", "M0 0")]);
        });
        let escaped = "a&lt;script&gt;&amp;&quot;&#39;\u{fffd}\u{fffd}\u{fffd}\u{fffd}\n]]&gt;--&gt;";
        assert_eq!(markup.finish(), format!("<p title=\"{escaped}\">{escaped}<path d=\"M0 0\"/></p>"));
    }
}
