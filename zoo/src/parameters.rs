//! The float parameters of a module by path, flat, in the module's own order.
//!
//! A path is the field names joined by dots, e.g. `encoder.layers.0.self_attention.query.weight`. Optimizers, checkpoints and
//! parity fixtures speak of parameters by path, never by Burn's ids, which are made anew in every process.

use std::cell::Cell;
use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Gradients, Shape, Tensor, TensorData};

/// A parameter's path, shape and FP32 values on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterValues {
    /// See the module's documentation.
    pub path: String,
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// Row-major values.
    pub values: Vec<f32>,
}

/// Why values could not be put into a module.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ParameterError {
    /// A parameter that the module has and the values have not.
    #[error(
        "parameter `{0}` is missing from the weights\nhint: the weights are of another recipe or another version of it"
    )]
    Missing(String),
    /// Values that the module has no place for.
    #[error(
        "the weights have `{0}`, which the model has not\nhint: the weights are of another recipe or another version of it"
    )]
    Unknown(String),
    /// A different shape.
    #[error(
        "parameter `{path}` is {found:?} in the weights and {expected:?} in the model\nhint: the weights are of another recipe, another version of it, or another vocabulary"
    )]
    Shape {
        /// Path.
        path: String,
        /// The module's.
        expected: Vec<usize>,
        /// The values'.
        found: Vec<usize>,
    },
}

/// Path and shape of every parameter.
pub fn shapes<M: Module>(module: &M) -> Vec<(String, Vec<usize>)> {
    let mut visitor = Visitor::new(|path: &str, shape: Vec<usize>, _: AnyTensor| (path.to_string(), shape));
    module.visit(&mut visitor);
    visitor.found
}

/// Number of scalar parameters.
pub fn count<M: Module>(module: &M) -> usize {
    shapes(module).iter().map(|(_, shape)| shape.iter().product::<usize>()).sum()
}

/// All values, on the host.
pub fn export<M: Module>(module: &M) -> Vec<ParameterValues> {
    let mut visitor = Visitor::new(|path: &str, shape: Vec<usize>, tensor: AnyTensor| {
        let values = host_values(tensor.0.inner());
        ParameterValues { path: path.to_string(), shape, values }
    });
    module.visit(&mut visitor);
    visitor.found
}

/// Replaces every parameter. All paths must be there with their shapes, and no others.
pub fn import<M: Module>(module: M, values: Vec<ParameterValues>) -> Result<M, ParameterError> {
    let mut by_path: BTreeMap<String, ParameterValues> =
        values.into_iter().map(|v| (v.path.clone(), v)).collect();
    for (path, shape) in shapes(&module) {
        let found = by_path.get(&path).ok_or_else(|| ParameterError::Missing(path.clone()))?;
        if found.shape != shape {
            return Err(ParameterError::Shape { path, expected: shape, found: found.shape.clone() });
        }
    }
    let known: std::collections::BTreeSet<String> =
        shapes(&module).into_iter().map(|(path, _)| path).collect();
    if let Some(extra) = by_path.keys().find(|path| !known.contains(*path)) {
        return Err(ParameterError::Unknown(extra.clone()));
    }
    Ok(update(module, |path, tensor| {
        let found = by_path.remove(path).expect("checked above");
        let n = found.values.len();
        Tensor::from_data(TensorData::new(found.values, [n]), &tensor.device())
    }))
}

/// The gradient of every parameter as a flat FP32 tensor outside autodiff, in the order of [`shapes`]; `None` where the loss
/// does not depend on it.
pub fn take_gradients<M: Module>(module: &M, gradients: &mut Gradients) -> Vec<Option<Tensor<1>>> {
    let mut visitor = GradientVisitor { gradients, found: Vec::new() };
    module.visit(&mut visitor);
    visitor.found
}

/// A new module whose parameter at each path is `change(path, flat value)`, as a fresh leaf. Values are outside autodiff.
pub fn update<M: Module>(module: M, change: impl FnMut(&str, Tensor<1>) -> Tensor<1>) -> M {
    let mut mapper = Mapper { path: Vec::new(), change };
    module.map(&mut mapper)
}

thread_local! {
    static READS: Cell<u64> = const { Cell::new(0) };
}

/// FP32 values of a tensor, on the host; without a copy where the host holds them and nobody else does.
///
/// The device comes to the end of what it was given first, so that a training step may call this once: see [`reads`].
#[expect(clippy::disallowed_methods, reason = "this is where tensors are read, and counted")]
pub fn host_values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    READS.set(READS.get() + 1);
    crate::precision::to_f32(tensor).into_data().try_into_vec::<f32>().expect("an f32 tensor has f32 data")
}

/// How often this thread has called [`host_values`].
pub fn reads() -> u64 {
    READS.get()
}

/// Which of several kinds a part is does not belong to a path: `encoder.layers`, not `encoder.Transformer.layers`.
fn enter(path: &mut Vec<String>, name: &str, container: &str) {
    if !container.starts_with("Enum:") {
        path.push(name.to_string());
    }
}

fn exit(path: &mut Vec<String>, container: &str) {
    if !container.starts_with("Enum:") {
        path.pop();
    }
}

/// A parameter without its rank.
struct AnyTensor(Tensor<1>);

struct Visitor<R, F> {
    path: Vec<String>,
    found: Vec<R>,
    read: F,
}

impl<R, F> Visitor<R, F> {
    fn new(read: F) -> Self {
        Self { path: Vec::new(), found: Vec::new(), read }
    }
}

impl<R, F: FnMut(&str, Vec<usize>, AnyTensor) -> R> ModuleVisitor for Visitor<R, F> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let shape = value.dims().to_vec();
        let flat = value.reshape([shape.iter().product::<usize>()]);
        self.found.push((self.read)(&self.path.join("."), shape, AnyTensor(flat)));
    }

    fn enter_module(&mut self, name: &str, container: &str) {
        enter(&mut self.path, name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        exit(&mut self.path, container);
    }
}

struct GradientVisitor<'a> {
    gradients: &'a mut Gradients,
    found: Vec<Option<Tensor<1>>>,
}

impl ModuleVisitor for GradientVisitor<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = param.val().grad_remove(self.gradients);
        self.found.push(gradient.map(|g| {
            let n = g.shape().num_elements();
            crate::precision::to_f32(g).reshape([n])
        }));
    }
}

struct Mapper<F> {
    path: Vec<String>,
    change: F,
}

impl<F: FnMut(&str, Tensor<1>) -> Tensor<1>> ModuleMapper for Mapper<F> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, value, mapper) = param.consume();
        let tracked = value.device().is_autodiff();
        let dims = value.dims();
        let n = Shape::from(dims).num_elements();
        let new = (self.change)(&self.path.join("."), value.inner().reshape([n])).reshape(dims);
        let new = if tracked { Tensor::from_inner(new).require_grad() } else { new };
        Param::from_mapped_value(id, new, mapper)
    }

    fn enter_module(&mut self, name: &str, container: &str) {
        enter(&mut self.path, name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        exit(&mut self.path, container);
    }
}
