//! HTML and SVG as text. Every element that is opened is closed, and all text is escaped.

/// Markup that is written from start to end.
#[derive(Debug, Default)]
pub(in crate::report) struct Markup {
    text: String,
}

/// Attributes of an element.
pub(in crate::report) type Attributes<'a> = &'a [(&'a str, &'a str)];

impl Markup {
    /// The complete text, starting with the document type.
    pub fn finish(self) -> String {
        self.text
    }

    /// Writes an element with the content that `inner` writes.
    pub fn element(&mut self, name: &str, attributes: Attributes<'_>, inner: impl FnOnce(&mut Self)) {
        self.open(name, attributes);
        self.text.push('>');
        inner(self);
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
    }

    /// Writes an element that contains only text.
    pub fn leaf(&mut self, name: &str, attributes: Attributes<'_>, text: &str) {
        self.element(name, attributes, |markup| markup.text(text));
    }

    /// Writes an HTML element without an end tag: `meta`, `img`.
    pub fn void(&mut self, name: &str, attributes: Attributes<'_>) {
        self.open(name, attributes);
        self.text.push('>');
    }

    /// Writes an empty SVG element.
    pub fn shape(&mut self, name: &str, attributes: Attributes<'_>) {
        self.open(name, attributes);
        self.text.push_str("/>");
    }

    /// Writes escaped text.
    pub fn text(&mut self, text: &str) {
        escape_into(&mut self.text, text);
    }

    /// Writes the program's own markup unescaped: the document type, the style sheet.
    pub fn own(&mut self, text: &'static str) {
        self.text.push_str(text);
    }

    /// Writes a line break into the source, where white space does not matter.
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

/// Appends text, escaped for use between tags and in quoted attributes. Characters that HTML does
/// not allow, even as numeric references, become U+FFFD.
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
