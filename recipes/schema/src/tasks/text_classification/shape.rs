//! Shapes of the layers of a classifier of texts, computed from its spec.

use std::fmt;

use super::{StateOutput, TextClassifierSpec, TextLayerSpec};

/// Shape of a layer's input or output for one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextShape {
    /// Numbers of words.
    Words {
        /// Number of positions.
        positions: u32,
    },
    /// Vectors, one for each position.
    Steps {
        /// Number of positions.
        positions: u32,
        /// Numbers of a position.
        width: u32,
    },
    /// One row of numbers.
    Row {
        /// Number of numbers.
        units: u32,
    },
}

impl TextShape {
    /// Number of positions; 1 for a row.
    pub fn positions(self) -> u32 {
        match self {
            Self::Words { positions } | Self::Steps { positions, .. } => positions,
            Self::Row { .. } => 1,
        }
    }

    /// Numbers of a position, or of the row.
    pub fn width(self) -> u32 {
        match self {
            Self::Words { .. } => 1,
            Self::Steps { width, .. } => width,
            Self::Row { units } => units,
        }
    }

    /// All numbers of a text.
    pub fn numbers(self) -> u64 {
        u64::from(self.positions()) * u64::from(self.width())
    }
}

impl fmt::Display for TextShape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Words { positions } => write!(f, "{positions} words"),
            Self::Steps { positions, width } => write!(f, "{positions} positions of {width}"),
            Self::Row { units } => write!(f, "a row of {units}"),
        }
    }
}

/// A layer that does not fit its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextShapeProblem {
    /// Index of the layer, from 0.
    pub layer: usize,
    /// The reason, with the sizes.
    pub message: String,
}

impl fmt::Display for TextShapeProblem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "layer {}: {}", self.layer + 1, self.message)
    }
}

impl std::error::Error for TextShapeProblem {}

impl TextClassifierSpec {
    /// Shape of the input and of the output of each layer for texts of `positions` positions: one
    /// more than layers. The last one is the row of scores.
    ///
    /// # Errors
    /// The first layer that does not fit its input, or whose output has no numbers or more than
    /// 2^32 - 1. A last layer that is not dense.
    pub fn shapes(&self, positions: u32) -> Result<Vec<TextShape>, TextShapeProblem> {
        let mut shape = TextShape::Words { positions };
        let mut shapes = vec![shape];
        if positions == 0 {
            return Err(TextShapeProblem { layer: 0, message: "a text has no positions".into() });
        }
        for (layer, spec) in self.layer.iter().enumerate() {
            let problem = |message| TextShapeProblem { layer, message };
            if matches!(spec, TextLayerSpec::LayerNormLstm { .. })
                && let Some(other) = self.layer[..layer].iter().find(|before| !before.keeps_words())
            {
                let kind = other.kind();
                return Err(problem(format!(
                    "`layer-norm-lstm` reads words, and `{kind}` before it leaves none"
                )));
            }
            shape = spec.output(shape).map_err(problem)?;
            if shape.numbers() == 0 || u32::try_from(shape.numbers()).is_err() {
                let count = if shape.numbers() == 0 { "no" } else { "more than 4294967295" };
                return Err(problem(format!("its output is {shape}: {count} numbers")));
            }
            shapes.push(shape);
        }
        match self.layer.last() {
            Some(TextLayerSpec::Dense { .. }) => Ok(shapes),
            _ => Err(TextShapeProblem {
                layer: self.layer.len().saturating_sub(1),
                message: "the last layer must be `dense`, with the outputs of the loss".into(),
            }),
        }
    }
}

impl TextLayerSpec {
    /// Name of the layer's kind, as in a recipe.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Embedding { .. } => "embedding",
            Self::Convolution { .. } => "convolution",
            Self::Kernels { .. } => "kernels",
            Self::Pool { .. } => "pool",
            Self::OverPositions { .. } => "over-positions",
            Self::Lstm { .. } => "lstm",
            Self::LayerNormLstm { .. } => "layer-norm-lstm",
            Self::Dense { .. } => "dense",
            Self::Relu {} => "relu",
            Self::Dropout { .. } => "dropout",
        }
    }

    /// Whether each position behind the layer is still one of a word, or of padding.
    fn keeps_words(&self) -> bool {
        matches!(self, Self::Embedding { .. } | Self::Dropout { .. } | Self::Relu {})
    }

    /// Output shape for an input shape.
    fn output(&self, input: TextShape) -> Result<TextShape, String> {
        let kind = self.kind();
        let steps = || match input {
            TextShape::Steps { positions, width } => Ok((positions, width)),
            TextShape::Words { .. } => {
                Err(format!("`{kind}` needs vectors, its input is {input}: put `embedding` before it"))
            }
            TextShape::Row { .. } => Err(format!("`{kind}` needs positions, its input is {input}")),
        };
        let left = |positions: u32, kernel: u32| match positions.checked_sub(kernel) {
            _ if kernel == 0 => Err("a kernel has at least 1 position".to_owned()),
            Some(rest) => Ok(rest + 1),
            None => Err(format!("a kernel of {kernel} is longer than its input, {input}")),
        };
        match *self {
            Self::Embedding { width, .. } => match input {
                TextShape::Words { positions } => Ok(TextShape::Steps { positions, width }),
                _ => Err(format!("`embedding` needs numbers of words, its input is {input}")),
            },
            Self::Convolution { channels, kernel, .. } => {
                let positions = left(steps()?.0, kernel)?;
                Ok(TextShape::Steps { positions, width: channels })
            }
            Self::Kernels { channels, ref kernels, .. } => {
                let (positions, _) = steps()?;
                kernels.iter().try_for_each(|kernel| left(positions, *kernel).map(|_| ()))?;
                let units = u64::from(channels).saturating_mul(kernels.len() as u64);
                Ok(TextShape::Row { units: u32::try_from(units).unwrap_or(u32::MAX) })
            }
            Self::Pool { size, .. } => {
                let (positions, width) = steps()?;
                match positions.checked_div(size) {
                    None => Err("a group has at least 1 position".into()),
                    Some(0) => Err(format!("a group of {size} is larger than its input, {input}")),
                    Some(positions) => Ok(TextShape::Steps { positions, width }),
                }
            }
            Self::OverPositions { .. } => Ok(TextShape::Row { units: steps()?.1 }),
            Self::Lstm { units, bidirectional, .. } => {
                steps()?;
                Ok(TextShape::Row { units: units.saturating_mul(if bidirectional { 2 } else { 1 }) })
            }
            Self::LayerNormLstm { layers: 0, .. } => Err("there must be a layer at least".to_owned()),
            Self::LayerNormLstm { width, state, .. } => {
                steps()?;
                let parts = if state == StateOutput::OutputAndCell { 2 } else { 1 };
                Ok(TextShape::Row { units: width.saturating_mul(parts) })
            }
            Self::Dense { units, .. } => match input {
                TextShape::Row { .. } => Ok(TextShape::Row { units }),
                _ => {
                    Err(format!("`dense` needs a row, its input is {input}: put `over-positions` before it"))
                }
            },
            Self::Relu {} | Self::Dropout { .. } => match input {
                TextShape::Words { .. } => Err(format!("`{kind}` needs vectors, its input is {input}")),
                _ => Ok(input),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(layers: &str) -> TextClassifierSpec {
        let start = "weights = { kind = 'xavier-uniform' }";
        let normed = "units = 4, width = 3, candidate_dropout = 0, dropout = 0, forget_bias = 1, epsilon = 1e-12, state";
        let text: String = layers
            .replace("NORMED", &format!("{normed} = 'output'"))
            .replace("BOTH", &format!("{normed} = 'output-and-cell'"))
            .split(';')
            .map(|layer| format!("{{ kind = {} }},", layer.trim().replace("START", start)))
            .collect();
        toml::from_str(&format!("layer = [{text}]")).unwrap()
    }

    fn problem(layers: &str) -> String {
        spec(layers).shapes(40).unwrap_err().to_string()
    }

    #[test]
    fn shapes_follow_kernels_pools_and_directions() {
        let spec = spec(
            "'embedding', width = 7, START; 'dropout', rate = 0.5; 'convolution', channels = 9, kernel = 5, START;
             'relu'; 'pool', of = 'max', size = 5; 'lstm', units = 3, gates = 'sigmoid', bidirectional = true;
             'dense', units = 2, START",
        );
        let steps = |positions, width| TextShape::Steps { positions, width };
        let row = |units| TextShape::Row { units };
        let words = TextShape::Words { positions: 40 };
        let due =
            [words, steps(40, 7), steps(40, 7), steps(36, 9), steps(36, 9), steps(7, 9), row(6), row(2)];
        assert_eq!(spec.shapes(40).unwrap(), due);
    }

    #[test]
    fn a_last_state_has_the_units_of_the_last_layer_or_twice_as_many() {
        let layers = |state: &str| {
            format!(
                "'embedding', width = 7, START; 'dropout', rate = 0.1; 'layer-norm-lstm', layers = 2, {state}; 'dense', units = 2, START"
            )
        };
        for (state, due) in [("NORMED", 3), ("BOTH", 6)] {
            assert_eq!(spec(&layers(state)).shapes(5).unwrap()[3], TextShape::Row { units: due });
        }
    }

    #[test]
    fn kernels_side_by_side_end_in_one_row() {
        let layers = "'embedding', width = 7, START; 'kernels', channels = 10, kernels = [3, 4, 5], START; 'dense', units = 6, START";
        assert_eq!(spec(layers).shapes(5).unwrap()[2], TextShape::Row { units: 30 });
        let long = spec(layers).shapes(4).unwrap_err().to_string();
        assert_eq!(long, "layer 2: a kernel of 5 is longer than its input, 4 positions of 7");
    }

    #[test]
    fn a_layer_that_does_not_fit_is_named_with_the_sizes() {
        let embedding = "'embedding', width = 7, START";
        for (layers, due) in [
            ("'dense', units = 2, START", "layer 1: `dense` needs a row, its input is 40 words"),
            ("'dropout', rate = 0.5", "layer 1: `dropout` needs vectors, its input is 40 words"),
            (
                "'pool', of = 'max', size = 2",
                "layer 1: `pool` needs vectors, its input is 40 words: put `embedding`",
            ),
            ("E; E", "layer 2: `embedding` needs numbers of words, its input is 40 positions of 7"),
            ("E; 'pool', of = 'max', size = 41", "layer 2: a group of 41 is larger than its input"),
            ("E; 'pool', of = 'max', size = 0", "layer 2: a group has at least 1 position"),
            (
                "E; 'convolution', channels = 1, kernel = 0, START",
                "layer 2: a kernel has at least 1 position",
            ),
            (
                "E; 'convolution', channels = 0, kernel = 1, START",
                "layer 2: its output is 40 positions of 0: no",
            ),
            (
                "E; 'over-positions', of = 'max'; 'relu'; 'lstm', units = 2, gates = 'sigmoid'",
                "layer 4: `lstm` needs positions",
            ),
            ("E; 'over-positions', of = 'average'; 'relu'", "layer 3: the last layer must be `dense`"),
            ("E; 'layer-norm-lstm', layers = 0, NORMED", "layer 2: there must be a layer at least"),
            (
                "E; 'pool', of = 'max', size = 2; 'layer-norm-lstm', layers = 1, NORMED",
                "layer 3: `layer-norm-lstm` reads words, and `pool` before it leaves none",
            ),
            (
                "E; 'convolution', channels = 4294967295, kernel = 1, START",
                "layer 2: its output is 40 positions of 4294967295: more than",
            ),
        ] {
            let found = problem(
                &layers.replace("E;", &format!("{embedding};")).replace("; E", &format!("; {embedding}")),
            );
            assert!(found.starts_with(due), "{found}\n{due}");
        }
        assert!(TextClassifierSpec { layer: Vec::new() }.shapes(4).is_err());
    }
}
