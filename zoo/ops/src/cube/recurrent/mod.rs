//! LSTM and GRU on GPUs. In each step, Burn computes the product and one kernel computes the rest,
//! forward and backward. The gradient of the weight is one product over all steps.

mod kernels;

use burn::backend::ops::FloatTensorOps;
use burn::backend::{TensorMetadata, tensor::FloatTensor};
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::cube::columns::column_sums;
use crate::cube::product::product;
use crate::cube::{Numbers, UNITS, cubes, element, numbers, output, room, values};
use crate::recurrent::{Kind, Plan, RecurrentOp, Sequences};
use kernels::{Cell, NONE, StepLaunch, backward_kernel, forward_kernel, initial_kernel, picked_kernel};

/// The steps of a batch of sequences, and the places of their rows.
struct Walk<'a> {
    plan: &'a Plan,
    hidden: usize,
    /// Gates x hidden.
    width: usize,
    /// Type of the products.
    half: DType,
    places: Vec<u32>,
    /// Start of each step's rows among the places.
    begins: Vec<usize>,
}

impl<'a> Walk<'a> {
    fn new(plan: &'a Plan, weight: &CubeTensor) -> Self {
        let [width, hidden] = weight.shape().dims();
        let sequences = &plan.sequences;
        let mut places: Vec<u32> = sequences.order().iter().map(|&given| given as u32).collect();
        let mut begins = Vec::with_capacity(sequences.steps());
        for step in 0..sequences.steps() {
            begins.push(places.len());
            places.extend((0..sequences.active(step)).map(|sequence| sequences.row(sequence, step) as u32));
        }
        Self { plan, hidden, width, half: DType::from(plan.compute.0), places, begins }
    }

    fn sequences(&self) -> &Sequences {
        &self.plan.sequences
    }

    fn step(&self, step: usize) -> StepLaunch {
        StepLaunch::new(
            self.hidden,
            self.sequences().count(),
            self.sequences().active(step),
            self.sequences().active(step + 1),
            self.begins[step],
            self.begins[step.saturating_sub(1)],
        )
    }

    /// A grid with one unit for each layer unit of each sequence that has the step.
    fn grid(&self, step: usize, like: &CubeTensor) -> (CubeCount, CubeDim) {
        let units = self.sequences().active(step) * self.hidden;
        (cubes(units.div_ceil(UNITS), like), CubeDim::new_1d(UNITS as u32))
    }

    fn cell(&self, step: usize, multiplied: bool, asked: bool, apart: bool) -> Cell {
        Cell {
            lstm: self.plan.kind == Kind::Lstm,
            biased: self.plan.biased,
            multiplied,
            first: step == 0,
            given: self.plan.given,
            asked,
            apart,
            keeps: self.half == DType::F16,
        }
    }

    /// Rows of outputs, kept values and initial states, numbered consecutively.
    fn picked(&self, [out, kept, initial]: [&CubeTensor; 3], places: &[u32], dtype: DType) -> CubeTensor {
        let picked = room(out, [places.len(), self.hidden], dtype);
        // SAFETY: a unit beyond the values ends before it reads; places are inside the three
        // matrices.
        unsafe {
            picked_kernel::launch_unchecked(
                &out.client,
                cubes((places.len() * self.hidden).div_ceil(UNITS), out),
                CubeDim::new_1d(UNITS as u32),
                values(out),
                values(kept),
                values(initial),
                numbers(out, places),
                output(&picked),
                places.len(),
                self.sequences().rows(),
                self.hidden,
                element(&picked),
            );
        }
        picked
    }

    /// Gradients of the initial states. `slopes` and `carry` are results of the first step.
    fn initial_gradient(&self, slopes: &CubeTensor, carry: &CubeTensor, of_last: &CubeTensor) -> CubeTensor {
        let out = room(of_last, of_last.shape(), DType::F32);
        let mut places = vec![NONE; self.sequences().count()];
        let begun = &self.sequences().order()[..self.sequences().active(0)];
        begun.iter().enumerate().for_each(|(sequence, &given)| places[given] = sequence as u32);
        // SAFETY: a unit beyond the values ends before it reads; places refer to sequences that
        // have a first step.
        unsafe {
            initial_kernel::launch_unchecked(
                &out.client,
                cubes(out.shape().num_elements().div_ceil(UNITS), &out),
                CubeDim::new_1d(UNITS as u32),
                values(slopes),
                values(carry),
                values(of_last),
                numbers(&out, &places),
                output(&out),
                self.plan.kind.states(),
                places.len(),
                self.hidden,
                self.plan.kind == Kind::Lstm,
                element(slopes),
            );
        }
        out
    }

    /// Place of an initial state of a given sequence; [`NONE`] if states are not given.
    fn initial_place(&self, state: usize, given: usize) -> u32 {
        let initial = state * self.sequences().count() + given;
        if self.plan.given { (2 * self.sequences().rows() + initial) as u32 } else { NONE }
    }

    /// Places of the last states. The last states of an empty sequence are its initial ones.
    fn last_places(&self) -> Vec<u32> {
        let (sequences, states) = (self.sequences(), self.plan.kind.states());
        let mut places = vec![NONE; states * sequences.count()];
        for (sequence, &given) in sequences.order().iter().enumerate() {
            for state in 0..states {
                places[state * sequences.count() + given] = match sequences.last_step(sequence) {
                    Some(step) => (state * sequences.rows() + sequences.row(sequence, step)) as u32,
                    None => self.initial_place(state, given),
                };
            }
        }
        places
    }
}

fn cast(x: &CubeTensor, dtype: DType) -> CubeTensor {
    if x.dtype == dtype { x.clone() } else { CubeBackend::float_cast(x.clone(), dtype.into()) }
}

fn transposed(x: &CubeTensor) -> CubeTensor {
    CubeBackend::float_swap_dims(x.clone(), 0, 1)
}

impl RecurrentOp for CubeBackend {
    fn recurrent(
        gates: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        initial: FloatTensor<Self>,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (out, last, ..) = Self::recurrent_kept(gates, weight, bias, initial, plan);
        (out, last)
    }

    fn recurrent_kept(
        gates: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        initial: FloatTensor<Self>,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        // Made contiguous once, because every step reads it.
        let gates = into_contiguous(gates);
        let walk = Walk::new(&plan, &weight);
        let (sequences, hidden) = (&plan.sequences, walk.hidden);
        let rows = sequences.rows();
        let acted = room(&gates, [rows, walk.width], DType::F32);
        let [kept, out] = [(); 2].map(|()| room(&gates, [rows, hidden], DType::F32));
        let columns = transposed(&cast(&weight, walk.half));
        let places = Numbers::new(&gates, &walk.places);
        // States of zero need no product.
        let mut h = plan.given.then(|| {
            let begun = &sequences.order()[..sequences.active(0)];
            let begun: Vec<u32> = begun.iter().map(|&given| walk.initial_place(0, given)).collect();
            walk.picked([&initial; 3], &begun, walk.half)
        });
        for step in 0..sequences.steps() {
            let sums = h.as_ref().map(|h| product(h, &columns));
            let next = room(&gates, [sequences.active(step + 1).max(1), hidden], walk.half);
            let (grid, dim) = walk.grid(step, &gates);
            // SAFETY: a unit without a sequence ends before it reads; each unit writes its own
            // values, and reads written values only from rows of an earlier step.
            unsafe {
                forward_kernel::launch_unchecked(
                    &gates.client,
                    grid,
                    dim,
                    values(&gates),
                    values(sums.as_ref().unwrap_or(&gates)),
                    values(&bias),
                    values(&initial),
                    places.argument(),
                    output(&acted),
                    output(&kept),
                    output(&out),
                    output(&next),
                    walk.step(step),
                    walk.cell(step, sums.is_some(), false, false),
                    [element(&gates), element(&next)],
                );
            }
            h = Some(next);
        }
        let last = walk.picked([&out, &kept, &initial], &walk.last_places(), DType::F32);
        (cast(&out, walk.half), last, acted, kept, out)
    }

    fn recurrent_backward(
        gates: FloatTensor<Self>,
        kept: FloatTensor<Self>,
        out: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        initial: FloatTensor<Self>,
        of_out: FloatTensor<Self>,
        of_last: FloatTensor<Self>,
        asked: bool,
        gates_type: DType,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        // Made contiguous once, because every step reads them.
        let (of_out, of_last) = (into_contiguous(of_out), into_contiguous(of_last));
        let walk = Walk::new(&plan, &weight);
        let (sequences, hidden) = (&plan.sequences, walk.hidden);
        let rows = sequences.rows();
        let lstm = plan.kind == Kind::Lstm;
        let states = if lstm { &kept } else { &out };
        let rows_of_weight = cast(&weight, walk.half);
        let dx = room(&gates, [rows, walk.width], gates_type);
        let apart = !lstm || gates_type != walk.half;
        let recurrent = if apart { room(&gates, [rows, walk.width], walk.half) } else { dx.clone() };
        let carry = room(&gates, [sequences.active(0), hidden], DType::F32);
        let places = Numbers::new(&gates, &walk.places);
        let mut slopes: Option<CubeTensor> = None;
        for step in (0..sequences.steps()).rev() {
            let of_step = room(&gates, [sequences.active(step), walk.width], walk.half);
            let (grid, dim) = walk.grid(step, &gates);
            // SAFETY: a unit without a sequence ends before it reads; each unit writes its own
            // values.
            unsafe {
                backward_kernel::launch_unchecked(
                    &gates.client,
                    grid,
                    dim,
                    values(&gates),
                    values(&kept),
                    values(states),
                    values(slopes.as_ref().unwrap_or(&kept)),
                    values(&of_out),
                    values(&of_last),
                    values(&initial),
                    places.argument(),
                    output(&carry),
                    output(&dx),
                    output(if apart { &recurrent } else { &carry }),
                    output(&of_step),
                    walk.step(step),
                    walk.cell(step, slopes.is_some(), asked, apart),
                    [element(&dx), element(&of_step), element(&of_out)],
                );
            }
            // Gradients of the outputs of the previous step, or of the initial ones.
            slopes = (step > 0 || plan.given).then(|| product(&of_step, &rows_of_weight));
        }
        let before = sequences.previous().into_iter().map(|previous| match previous {
            Ok(row) => row as u32,
            Err(sequence) => walk.initial_place(0, sequences.order()[sequence]),
        });
        let before: Vec<u32> = before.collect();
        let before = walk.picked([&out, &kept, &initial], &before, walk.half);
        let of_weight = cast(&product(&transposed(&recurrent), &before), DType::F32);
        let of_bias = if plan.biased { column_sums(&recurrent) } else { of_last.clone() };
        let of_initial = match &slopes {
            Some(slopes) if plan.given => walk.initial_gradient(slopes, &carry, &of_last),
            _ => of_last,
        };
        (dx, of_weight, of_bias, of_initial)
    }
}
