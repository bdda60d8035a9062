//! Checks the layers of acoustic models, in a recipe or in a spec made in code.

use super::{
    AcousticLayerSpec, AcousticSpec, Convolution2dSpec, ConvolutionSpec, FramePadding, RecurrentSpec,
    Residual,
};
use crate::validate::{Problem, Problems};

impl AcousticSpec {
    /// The errors of the values; empty if there are none.
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = Problems::default();
        found.above_zero(self.norm.epsilon, "norm.epsilon");
        found.within(self.norm.momentum, 0.0, 1.0, "norm.momentum");
        // The frequency axis exists until a layer mixes the frequencies. Residuals need a constant
        // number of frames.
        let (mut mixed, mut dense) = (false, false);
        for (at, layer) in self.layer.iter().enumerate() {
            let at = format!("layer.{at}");
            match layer {
                AcousticLayerSpec::Convolution2d(layer) => {
                    found.hint(
                        !mixed,
                        &at,
                        || format!("`{at}` is over frequencies, which a layer before it has mixed"),
                        "`convolution2d` comes before all other kinds",
                    );
                    found.require(!dense || layer.stride[0] == 1, &at, || apart(&at));
                    image(layer, &at, &mut found);
                    continue;
                }
                AcousticLayerSpec::Convolution(layer) => {
                    let keeps = layer.stride == 1 && layer.padding == FramePadding::Same;
                    found.require(!dense || keeps, &at, || apart(&at));
                    convolution(layer, keeps, &at, &mut found);
                    dense |= layer.residual == Residual::Dense;
                }
                AcousticLayerSpec::Recurrent(layer) => recurrent(layer, &at, &mut found),
                AcousticLayerSpec::RowConvolution(layer) => found.count(layer.width, &format!("{at}.width")),
                AcousticLayerSpec::Dense(layer) => {
                    found.count(layer.units, &format!("{at}.units"));
                    rate(layer.dropout, &at, &mut found);
                }
            }
            mixed = true;
        }
        found.0
    }
}

fn apart(at: &str) -> String {
    format!("`{at}` changes the number of frames behind a dense residual, whose addends have all of them")
}

fn rate(dropout: f64, at: &str, found: &mut Problems) {
    found.require((0.0..1.0).contains(&dropout), &format!("{at}.dropout"), || {
        format!("`{at}.dropout` is {dropout}; it must be 0 or more and less than 1")
    });
}

fn image(layer: &Convolution2dSpec, at: &str, found: &mut Problems) {
    found.count(layer.channels, &format!("{at}.channels"));
    for (axis, value) in layer.kernel.iter().enumerate() {
        found.count(*value, &format!("{at}.kernel.{axis}"));
    }
    for (axis, value) in layer.stride.iter().enumerate() {
        found.count(*value, &format!("{at}.stride.{axis}"));
    }
}

fn convolution(layer: &ConvolutionSpec, keeps: bool, at: &str, found: &mut Problems) {
    for (key, value) in [
        ("repeat", layer.repeat),
        ("channels", layer.channels),
        ("kernel", layer.kernel),
        ("stride", layer.stride),
        ("dilation", layer.dilation),
    ] {
        found.count(value, &format!("{at}.{key}"));
    }
    found.hint(
        layer.stride == 1 || layer.repeat == 1,
        &format!("{at}.stride"),
        || format!("`{at}.stride` is {} in a block of {}", layer.stride, layer.repeat),
        "give the strided convolution a layer of its own",
    );
    found.require(layer.residual == Residual::None || keeps, &format!("{at}.residual"), || {
        format!("`{at}` adds its input to fewer frames than that has")
    });
    rate(layer.dropout, at, found);
}

fn recurrent(layer: &RecurrentSpec, at: &str, found: &mut Problems) {
    found.count(layer.layers, &format!("{at}.layers"));
    found.count(layer.hidden, &format!("{at}.hidden"));
    found.require(layer.biases <= 2, &format!("{at}.biases"), || {
        format!("`{at}.biases` is {}; it must be 0, 1 or 2", layer.biases)
    });
    rate(layer.dropout, at, found);
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "init = \"torch\"\nnorm = { epsilon = 1e-3, momentum = 0.1 }\n";
    const BLOCK: &str =
        "[[layer]]\nkind = \"convolution\"\nchannels = 4\nkernel = 3\nactivation = \"relu\"\n";
    const IMAGE: &str = "[[layer]]\nkind = \"convolution2d\"\nchannels = 4\nkernel = [3, 3]\nstride = [2, 2]\nactivation = \"relu\"\n";
    const RECURRENT: &str =
        "[[layer]]\nkind = \"recurrent\"\ncell = \"gru\"\nlayers = 1\nhidden = 4\nbiases = 2\n";
    const DENSE: &str = "[[layer]]\nkind = \"dense\"\nunits = 4\nactivation = \"relu\"\n";

    fn keys(text: &str) -> Vec<String> {
        let spec: AcousticSpec = toml::from_str(text).unwrap();
        spec.problems().into_iter().map(|problem| problem.key).collect()
    }

    #[test]
    fn a_spec_without_problems_has_none() {
        let text = [HEAD, IMAGE, IMAGE, BLOCK, RECURRENT, DENSE].concat();
        assert!(keys(&text).is_empty());
        let residual = format!("{HEAD}{BLOCK}stride = 2\n{BLOCK}repeat = 2\nresidual = \"dense\"\n{BLOCK}");
        assert!(keys(&residual).is_empty());
    }

    #[test]
    fn what_cannot_be_built_is_named_by_its_key() {
        for (text, key) in [
            (HEAD.replace("1e-3", "0.0"), "norm.epsilon"),
            (HEAD.replace("0.1", "1.5"), "norm.momentum"),
            (format!("{HEAD}{BLOCK}{IMAGE}"), "layer.1"),
            (format!("{HEAD}{}", IMAGE.replace("[3, 3]", "[3, 0]")), "layer.0.kernel.1"),
            (format!("{HEAD}{}", BLOCK.replace("kernel = 3", "kernel = 0")), "layer.0.kernel"),
            (format!("{HEAD}{BLOCK}repeat = 0\n"), "layer.0.repeat"),
            (format!("{HEAD}{BLOCK}repeat = 2\nstride = 2\n"), "layer.0.stride"),
            (format!("{HEAD}{BLOCK}padding = \"none\"\nresidual = \"block\"\n"), "layer.0.residual"),
            (format!("{HEAD}{BLOCK}residual = \"dense\"\n{BLOCK}stride = 2\n"), "layer.1"),
            (format!("{HEAD}{BLOCK}dropout = 1.0\n"), "layer.0.dropout"),
            (format!("{HEAD}{}", RECURRENT.replace("biases = 2", "biases = 3")), "layer.0.biases"),
            (format!("{HEAD}{}", DENSE.replace("units = 4", "units = 0")), "layer.0.units"),
        ] {
            assert_eq!(
                keys(&format!("{text}{}", if text.contains("layer") { "" } else { DENSE })),
                [key],
                "{text}"
            );
        }
    }
}
