//! Pictures and sounds that an evaluation kept, put into the page itself.
//!
//! An evaluation `EVAL.SEARCH.json` may have `EVAL.SEARCH.samples.json` beside it: a list of `{"title": …, "text": …, "files": […]}`, files
//! being SVG, PNG or WAV in the same folder. This is how a task whose results are no text shows them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::markup::Markup;

/// A line of `samples.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleLine {
    /// What it is.
    pub title: String,
    /// What was said or asked for.
    #[serde(default)]
    pub text: String,
    /// Names of its files.
    pub files: Vec<String>,
}

/// A sample with its files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample {
    /// What it is.
    pub title: String,
    /// What was said or asked for.
    pub text: String,
    /// Files.
    pub media: Vec<Medium>,
}

/// A picture or a sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Medium {
    /// Name of its file.
    pub name: String,
    kind: Kind,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Svg,
    Png,
    Wav,
}

impl Kind {
    /// The kind that a name's ending says, with what a file of it begins with.
    fn of(name: &str, bytes: &[u8]) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        let (kind, fits) = match ending.to_ascii_lowercase().as_str() {
            "svg" => (Self::Svg, std::str::from_utf8(bytes).is_ok_and(|text| text.contains("<svg"))),
            "png" => (Self::Png, bytes.starts_with(b"\x89PNG\r\n\x1a\n")),
            "wav" => (Self::Wav, bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE")),
            _ => return None,
        };
        fits.then_some(kind)
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Svg => "image/svg+xml",
            Self::Png => "image/png",
            Self::Wav => "audio/wav",
        }
    }
}

impl Medium {
    /// A file by its name and bytes; none unless it is what its ending says, and that is SVG, PNG or WAV.
    #[must_use]
    pub fn new(name: &str, bytes: Vec<u8>) -> Option<Self> {
        Some(Self { name: name.to_owned(), kind: Kind::of(name, &bytes)?, bytes })
    }

    fn data_uri(&self) -> String {
        format!("data:{};base64,{}", self.kind.media_type(), STANDARD.encode(&self.bytes))
    }
}

/// Samples, each with its pictures and players. A picture of SVG is shown as a picture: nothing in it runs.
pub(super) fn samples(markup: &mut Markup, samples: &[Sample]) {
    for sample in samples {
        markup.element("article", &[("class", "sample")], |article| {
            article.leaf("h5", &[], &sample.title);
            if !sample.text.is_empty() {
                article.leaf("p", &[("dir", "auto")], &sample.text);
            }
            for medium in &sample.media {
                let (data, about) = (medium.data_uri(), format!("{}: {}", sample.title, medium.name));
                article.element("figure", &[], |figure| {
                    match medium.kind {
                        Kind::Wav => figure.element(
                            "audio",
                            &[
                                ("controls", ""),
                                ("preload", "metadata"),
                                ("aria-label", &about),
                                ("src", &data),
                            ],
                            |_| {},
                        ),
                        Kind::Svg | Kind::Png => figure.void("img", &[("alt", &about), ("src", &data)]),
                    }
                    figure.leaf("figcaption", &[], &medium.name);
                });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_what_they_are_called_and_end_up_in_the_page() {
        let svg = Medium::new("mel.svg", b"<svg xmlns='x'><script>1</script></svg>".to_vec()).unwrap();
        let wav = Medium::new("A.WAV", b"RIFF\0\0\0\0WAVEfmt ".to_vec()).unwrap();
        let png = Medium::new("a.png", b"\x89PNG\r\n\x1a\n...".to_vec()).unwrap();
        for (name, bytes) in [
            ("a.png", &b"RIFF"[..]),
            ("a.html", b"<svg"),
            ("png", b""),
            ("a.wav", b"RIFF"),
            ("a.svg", b"\xff<svg"),
        ] {
            assert_eq!(Medium::new(name, bytes.to_vec()), None, "{name}");
        }
        let mut markup = Markup::default();
        let sample = Sample { title: "One \"two\"".into(), text: "<b>".into(), media: vec![svg, wav, png] };
        samples(&mut markup, &[sample]);
        let text = markup.finish();
        assert!(
            text.contains(
                "<img alt=\"One &quot;two&quot;: mel.svg\" src=\"data:image/svg+xml;base64,PHN2ZyB4"
            ),
            "{text}"
        );
        assert!(text.contains("<audio controls=\"\" preload=\"metadata\" aria-label=\"One &quot;two&quot;: A.WAV\" src=\"data:audio/wav;base64,UklGRgAAAABXQVZFZm10IA==\"></audio>"), "{text}");
        assert!(
            text.contains("&lt;b&gt;") && text.contains("image/png") && !text.contains("<script"),
            "{text}"
        );
    }
}
