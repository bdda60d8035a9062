//! Pictures and sounds that an evaluation kept, embedded in the page.
//!
//! An evaluation `EVAL.SEARCH.json` may have a file `EVAL.SEARCH.samples.json` beside it: a list of
//! `{"title": …, "text": …, "scores": {…}, "files": […]}`. The files are SVG, PNG or WAV in the
//! same folder. Tasks whose results are not text show them this way.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::markup::Markup;
use super::tables::facts;
use crate::verdict::number;

/// One entry of `samples.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleLine {
    /// Title of the sample.
    pub title: String,
    /// The text that was spoken or requested.
    #[serde(default)]
    pub text: String,
    /// Its scores by name, in order: numbers or words.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub scores: serde_json::Map<String, serde_json::Value>,
    /// Files of the sample.
    pub files: Vec<SampleFile>,
}

/// A file of a sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum SampleFile {
    /// A file whose name is also its caption.
    Named(String),
    /// A file with a caption.
    Captioned {
        /// Name of the file.
        file: String,
        /// Caption.
        caption: String,
    },
}

impl SampleFile {
    /// A file with a caption.
    #[must_use]
    pub fn new(file: &str, caption: &str) -> Self {
        Self::Captioned { file: file.to_owned(), caption: caption.to_owned() }
    }

    /// Name of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        let (Self::Named(name) | Self::Captioned { file: name, .. }) = self;
        name
    }

    /// Caption of the file.
    #[must_use]
    pub fn caption(&self) -> &str {
        let (Self::Named(caption) | Self::Captioned { caption, .. }) = self;
        caption
    }
}

/// A sample with the content of its files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample {
    /// Title of the sample.
    pub title: String,
    /// The text that was spoken or requested.
    pub text: String,
    /// Its scores by name.
    pub scores: serde_json::Map<String, serde_json::Value>,
    /// Pictures and sounds.
    pub media: Vec<Medium>,
}

/// A picture or a sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Medium {
    /// Name of the file.
    pub name: String,
    caption: String,
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
    /// The kind given by the extension of a name, if the file starts with that kind's signature.
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
    /// A medium from a file's name and bytes. `None` unless the content matches the extension and
    /// is SVG, PNG or WAV.
    #[must_use]
    pub fn new(name: &str, bytes: Vec<u8>) -> Option<Self> {
        Some(Self { name: name.to_owned(), caption: name.to_owned(), kind: Kind::of(name, &bytes)?, bytes })
    }

    /// The same medium with another caption.
    #[must_use]
    pub fn captioned(mut self, caption: &str) -> Self {
        self.caption = caption.to_owned();
        self
    }

    fn data_uri(&self) -> String {
        format!("data:{};base64,{}", self.kind.media_type(), STANDARD.encode(&self.bytes))
    }
}

/// An SVG drawing as an image, so that the page's style does not change its colours.
pub(super) fn drawing(markup: &mut Markup, svg: String, about: &str, caption: &str) {
    let medium =
        Medium { name: String::new(), caption: caption.to_owned(), kind: Kind::Svg, bytes: svg.into_bytes() };
    markup.element("figure", &[("class", "sample")], |figure| {
        figure.void("img", &[("alt", about), ("src", &medium.data_uri())]);
        figure.leaf("figcaption", &[], &medium.caption);
    });
}

/// Samples with their pictures and players. SVG is shown as an image, so no script in it runs.
pub(super) fn samples(markup: &mut Markup, samples: &[Sample]) {
    for sample in samples {
        markup.element("article", &[("class", "sample")], |article| {
            article.leaf("h5", &[], &sample.title);
            if !sample.text.is_empty() {
                article.leaf("p", &[("dir", "auto")], &sample.text);
            }
            if !sample.scores.is_empty() {
                let scores: Vec<(&str, String)> =
                    sample.scores.iter().map(|(name, value)| (name.as_str(), shown(value))).collect();
                facts(article, scores.iter().map(|(name, value)| (*name, value.as_str())));
            }
            for medium in &sample.media {
                let (data, about) = (medium.data_uri(), format!("{}: {}", sample.title, medium.caption));
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
                    figure.leaf("figcaption", &[], &medium.caption);
                });
            }
        });
    }
}

/// A score as text: whole numbers unchanged, others with about three digits.
fn shown(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Number(one) if one.is_f64() => one.as_f64().map_or_else(String::new, number),
        other => other.to_string(),
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
        let scores = serde_json::json!({"focus": 0.8125, "steps": 431, "end": "<early>", "mcd": null});
        let sample = Sample {
            title: "One \"two\"".into(),
            text: "<b>".into(),
            scores: scores.as_object().cloned().unwrap_or_default(),
            media: vec![svg, wav, png.captioned("Mel, <predicted>")],
        };
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
        for part in [
            "<dl class=\"facts\"><div><dt>focus</dt><dd>0.812</dd></div><div><dt>steps</dt><dd>431</dd></div>",
            "<dt>end</dt><dd>&lt;early&gt;</dd>",
            "<dt>mcd</dt><dd>null</dd>",
            "<figcaption>Mel, &lt;predicted&gt;</figcaption>",
            "<figcaption>mel.svg</figcaption>",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn a_line_of_the_list_is_read_with_and_without_captions() {
        let read = |text: &str| serde_json::from_str::<SampleLine>(text);
        let old = read(r#"{"title": "One", "files": ["a.wav"]}"#).unwrap();
        assert_eq!((old.files[0].name(), old.files[0].caption()), ("a.wav", "a.wav"));
        let line = SampleLine {
            title: "Two".into(),
            files: vec![SampleFile::new("b.wav", "Predicted"), SampleFile::Named("c.svg".into())],
            scores: serde_json::json!({"z": 1.5, "a": "early"}).as_object().cloned().unwrap_or_default(),
            ..SampleLine::default()
        };
        let text = serde_json::to_string(&line).unwrap();
        assert!(
            text.contains(
                r#""scores":{"z":1.5,"a":"early"},"files":[{"file":"b.wav","caption":"Predicted"},"c.svg"]"#
            ),
            "{text}"
        );
        assert_eq!(read(&text).unwrap(), line);
        assert!(read(r#"{"title": "One", "files": [{"file": "a.wav", "loud": true}]}"#).is_err());
    }
}
