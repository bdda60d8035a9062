//! Shapes of a classifier's layers, computed from its spec.

use std::fmt;

use super::{ClassifierLayerSpec, ClassifierSpec};

/// Shape of a layer's output for one picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerShape {
    /// Pixels with channels.
    Picture {
        /// Number of rows of pixels.
        height: u32,
        /// Number of columns of pixels.
        width: u32,
        /// Numbers of a pixel.
        channels: u32,
    },
    /// One row of numbers.
    Row {
        /// Number of numbers.
        units: u32,
    },
}

impl LayerShape {
    /// Number of numbers of a picture.
    pub fn numbers(self) -> u64 {
        match self {
            Self::Picture { height, width, channels } => {
                u64::from(height) * u64::from(width) * u64::from(channels)
            }
            Self::Row { units } => units.into(),
        }
    }
}

impl fmt::Display for LayerShape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Picture { height, width, channels } => {
                write!(f, "{height}x{width} with {channels} channels")
            }
            Self::Row { units } => write!(f, "a row of {units}"),
        }
    }
}

/// A layer that does not fit its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeProblem {
    /// Index of the layer, from 0.
    pub layer: usize,
    /// The reason, with the sizes.
    pub message: String,
}

impl fmt::Display for ShapeProblem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "layer {}: {}", self.layer + 1, self.message)
    }
}

impl std::error::Error for ShapeProblem {}

impl ClassifierSpec {
    /// Output shape of each layer for a picture `[height, width, channels]`. The last one is the
    /// row of scores.
    ///
    /// # Errors
    /// The first layer that does not fit its input, or whose output has no numbers or more than
    /// 2^32 - 1. A last layer that is not dense.
    pub fn shapes(&self, size: [u32; 3]) -> Result<Vec<LayerShape>, ShapeProblem> {
        let [height, width, channels] = size;
        let mut shape = LayerShape::Picture { height, width, channels };
        let mut shapes = Vec::with_capacity(self.layer.len());
        if shape.numbers() == 0 {
            return Err(ShapeProblem { layer: 0, message: format!("the picture is {shape}: no numbers") });
        }
        for (layer, spec) in self.layer.iter().enumerate() {
            let problem = |message| ShapeProblem { layer, message };
            shape = spec.output(shape).map_err(problem)?;
            if shape.numbers() == 0 {
                return Err(problem(format!("its output is {shape}: no numbers")));
            }
            if u32::try_from(shape.numbers()).is_err() {
                return Err(problem(format!("its output is {shape}: more than {} numbers", u32::MAX)));
            }
            shapes.push(shape);
        }
        match self.layer.last() {
            Some(ClassifierLayerSpec::Dense { .. }) => Ok(shapes),
            _ => Err(ShapeProblem {
                layer: self.layer.len().saturating_sub(1),
                message: "the last layer must be `dense`, with a unit for each class".into(),
            }),
        }
    }
}

impl ClassifierLayerSpec {
    /// Name of the layer's kind, as in a recipe.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Convolution { .. } => "convolution",
            Self::Pool { .. } => "pool",
            Self::Flatten { .. } => "flatten",
            Self::Dense { .. } => "dense",
            Self::Relu {} => "relu",
            Self::Sigmoid {} => "sigmoid",
            Self::Dropout { .. } => "dropout",
        }
    }

    /// Output shape for an input shape.
    fn output(&self, input: LayerShape) -> Result<LayerShape, String> {
        let picture = || match input {
            LayerShape::Picture { height, width, channels } => Ok([height, width, channels]),
            LayerShape::Row { .. } => Err(format!("`{}` needs a picture, its input is {input}", self.kind())),
        };
        match *self {
            Self::Convolution { channels, kernel, stride, padding, .. } => {
                let [height, width, _] = picture()?;
                let [height, width] = places([height, width], ("kernel", kernel), stride, padding)?;
                Ok(LayerShape::Picture { height, width, channels })
            }
            Self::Pool { size, stride, .. } => {
                let [height, width, channels] = picture()?;
                let [height, width] = places([height, width], ("size", size), stride, 0)?;
                Ok(LayerShape::Picture { height, width, channels })
            }
            Self::Flatten { .. } => {
                let [height, width, channels] = picture()?;
                // No overflow: the shapes before have fewer numbers than 2^32.
                let units = height.saturating_mul(width).saturating_mul(channels);
                Ok(LayerShape::Row { units })
            }
            Self::Dense { units, .. } => match input {
                LayerShape::Row { .. } => Ok(LayerShape::Row { units }),
                LayerShape::Picture { .. } => {
                    Err(format!("`dense` needs a row, its input is {input}: put `flatten` before it"))
                }
            },
            Self::Relu {} | Self::Sigmoid {} | Self::Dropout { .. } => Ok(input),
        }
    }
}

/// Number of places of a square of pixels on a picture `[height, width]`.
fn places(
    picture: [u32; 2],
    (name, size): (&str, u32),
    stride: u32,
    padding: u32,
) -> Result<[u32; 2], String> {
    if size == 0 || stride == 0 {
        return Err(format!("{name} {size} and stride {stride} must be at least 1"));
    }
    let [height, width] = picture.map(|side| u64::from(side) + 2 * u64::from(padding));
    if height.min(width) < u64::from(size) {
        let padded = if padding > 0 { " with padding" } else { "" };
        return Err(format!("{name} {size} is larger than its input, {height}x{width}{padded}"));
    }
    let places = |side: u64| u32::try_from((side - u64::from(size)) / u64::from(stride) + 1);
    match (places(height), places(width)) {
        (Ok(height), Ok(width)) => Ok([height, width]),
        _ => Err(format!("padding {padding} is too large")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(layers: &str) -> ClassifierSpec {
        let start = "weights = \"torch\", bias = \"torch\"";
        let text: String = layers
            .split(';')
            .map(|layer| format!("{{ kind = {} }},", layer.trim().replace("START", start)))
            .collect();
        toml::from_str(&format!("layer = [{text}]")).unwrap()
    }

    fn problem(layers: &str) -> String {
        spec(layers).shapes([28, 20, 3]).unwrap_err().to_string()
    }

    #[test]
    fn shapes_follow_kernels_strides_and_padding() {
        let spec = spec(
            "'convolution', channels = 6, kernel = 5, padding = 2, START; 'sigmoid';
             'pool', of = 'average', size = 2, stride = 2;
             'convolution', channels = 8, kernel = 3, stride = 2, START;
             'pool', of = 'max', size = 2, stride = 2; 'dropout', rate = 0.5;
             'flatten', order = 'channels-first'; 'relu'; 'dense', units = 10, START",
        );
        let picture = |height, width, channels| LayerShape::Picture { height, width, channels };
        let row = |units| LayerShape::Row { units };
        let due = [
            picture(28, 20, 6),
            picture(28, 20, 6),
            picture(14, 10, 6),
            picture(6, 4, 8),
            picture(3, 2, 8),
            picture(3, 2, 8),
            row(48),
            row(48),
            row(10),
        ];
        assert_eq!(spec.shapes([28, 20, 3]).unwrap(), due);
    }

    #[test]
    fn a_layer_that_does_not_fit_is_named_with_the_sizes() {
        for (layers, due) in [
            (
                "'dense', units = 10, START",
                "layer 1: `dense` needs a row, its input is 28x20 with 3 channels",
            ),
            (
                "'relu'; 'pool', of = 'max', size = 21, stride = 1",
                "layer 2: size 21 is larger than its input, 28x20",
            ),
            (
                "'convolution', channels = 1, kernel = 25, padding = 2, START",
                "layer 1: kernel 25 is larger than its input, 32x24 with padding",
            ),
            ("'pool', of = 'max', size = 2, stride = 0", "layer 1: size 2 and stride 0 must be at least 1"),
            ("'convolution', channels = 1, kernel = 0, START", "layer 1: kernel 0 and stride 1 must be"),
            (
                "'convolution', channels = 0, kernel = 1, START",
                "layer 1: its output is 28x20 with 0 channels",
            ),
            (
                "'flatten', order = 'channels-last'; 'convolution', channels = 1, kernel = 1, START",
                "layer 2: `convolution` needs a picture, its input is a row of 1680",
            ),
            (
                "'flatten', order = 'channels-last'; 'flatten', order = 'channels-last'",
                "layer 2: `flatten` needs",
            ),
            ("'flatten', order = 'channels-last'; 'relu'", "layer 2: the last layer must be `dense`"),
            (
                "'convolution', channels = 4294967295, kernel = 1, START",
                "layer 1: its output is 28x20 with 4294967295 channels: more than",
            ),
            (
                "'convolution', channels = 1, kernel = 1, padding = 4294967295, START",
                "layer 1: padding 4294967295",
            ),
        ] {
            let found = problem(layers);
            assert!(found.starts_with(due), "{found}\n{due}");
        }
        assert!(ClassifierSpec { layer: Vec::new() }.shapes([1, 1, 1]).is_err());
        assert!(spec("'flatten', order = 'channels-last'").shapes([28, 0, 1]).is_err());
    }
}
