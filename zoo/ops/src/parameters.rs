//! The float parameters of a module by path, flat, in the order of the module.
//!
//! A path is the field names joined by dots, e.g. `encoder.layers.0.self_attention.query.weight`.
//! Optimizers, checkpoints and parity fixtures identify parameters by path and never by Burn's ids,
//! which differ in every process.

use std::cell::Cell;
use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Gradients, Shape, Tensor, TensorData};
use burn_autodiff::NodeId;

/// A parameter's path, shape and FP32 values on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterValues {
    /// Path of the parameter; see the module's documentation.
    pub path: String,
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// Values in row-major order.
    pub values: Vec<f32>,
}

/// Reason why values could not be imported into a module.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ParameterError {
    /// The module has a parameter that the values lack.
    #[error(
        "parameter `{0}` is missing from the weights\nhint: the weights are of another recipe or another version of it"
    )]
    Missing(String),
    /// The values have a parameter that the module lacks.
    #[error(
        "the weights have `{0}`, which the model has not\nhint: the weights are of another recipe or another version of it"
    )]
    Unknown(String),
    /// A parameter has another shape.
    #[error(
        "parameter `{path}` is {found:?} in the weights and {expected:?} in the model\nhint: the weights are of another recipe, another version of it, or another vocabulary"
    )]
    Shape {
        path: String,
        /// Shape in the module.
        expected: Vec<usize>,
        /// Shape in the values.
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

/// All values, copied to the host.
pub fn export<M: Module>(module: &M) -> Vec<ParameterValues> {
    let mut visitor = Visitor::new(|path: &str, shape: Vec<usize>, tensor: AnyTensor| {
        let values = host_values(tensor.0.inner());
        ParameterValues { path: path.to_string(), shape, values }
    });
    module.visit(&mut visitor);
    visitor.found
}

/// Replaces the values of every parameter.
///
/// # Errors
/// If a path is missing or unknown, or a shape differs.
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

/// The gradient of every parameter as a flat FP32 tensor outside autodiff, in the order of
/// [`shapes`]. `None` where the loss does not depend on the parameter.
pub fn take_gradients<M: Module>(module: &M, gradients: &mut Gradients) -> Vec<Option<Tensor<1>>> {
    let mut visitor = GradientVisitor { gradients, found: Vec::new() };
    module.visit(&mut visitor);
    visitor.found
}

/// Path of every parameter under autodiff, with its identity in the graph. An update gives a
/// parameter a new identity.
pub(crate) fn nodes<M: Module>(module: &M) -> Vec<(String, NodeId)> {
    let mut visitor = NodeVisitor { path: Vec::new(), found: Vec::new() };
    module.visit(&mut visitor);
    visitor.found
}

/// A new module whose parameter at each path is `change(path, flat value)`, as a fresh leaf. Values
/// are outside autodiff.
pub fn update<M: Module>(module: M, change: impl FnMut(&str, Tensor<1>) -> Tensor<1>) -> M {
    let mut mapper = Mapper { path: Vec::new(), change };
    module.map(&mut mapper)
}

thread_local! {
    static READS: Cell<u64> = const { Cell::new(0) };
}

/// FP32 values of a tensor, on the host. Nothing is copied where the host holds the only reference
/// to them.
///
/// The call waits until the device has completed its queue, so a training step may call it once:
/// see [`reads`].
#[expect(clippy::disallowed_methods, reason = "this is where tensors are read, and counted")]
pub fn host_values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    READS.set(READS.get() + 1);
    crate::precision::to_f32(tensor).into_data().try_into_vec::<f32>().expect("an f32 tensor has f32 data")
}

/// Number of calls of [`host_values`] by this thread.
pub fn reads() -> u64 {
    READS.get()
}

/// The variant of an enum is not part of a path: `encoder.layers`, not
/// `encoder.Transformer.layers`.
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

/// A parameter of any rank, as a flat tensor.
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

struct NodeVisitor {
    path: Vec<String>,
    found: Vec<(String, NodeId)>,
}

impl ModuleVisitor for NodeVisitor {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(node) = crate::identity::node(&param.val()) {
            self.found.push((self.path.join("."), node));
        }
    }

    fn enter_module(&mut self, name: &str, container: &str) {
        enter(&mut self.path, name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        exit(&mut self.path, container);
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
