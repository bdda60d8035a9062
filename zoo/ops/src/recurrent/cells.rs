//! One step of one sequence, for a range of its units: gates, tanh and sigmoid in one pass, and
//! their gradients.

use crate::simd::{fma, hard_sigmoid, sigmoid, tanh, vectorized};

/// The cell of a recurrent layer.
pub trait Cell<const GATES: usize> {
    /// Whether a step carries over the kept value of the step before, besides the product;
    /// otherwise it carries over the output.
    const TAKES_KEPT: bool;

    /// Forward step. `gates` holds the input's part, `sums` the recurrent part, and `before` the
    /// carried value. Writes the gates after their activations, further values for the backward
    /// pass to `kept`, and the output to `out`.
    fn forward(
        gates: [&mut [f32]; GATES],
        sums: [&[f32]; GATES],
        before: &[f32],
        kept: &mut [f32],
        out: &mut [f32],
    );

    /// Backward step. `gradient` is the output's, without the part that `carry` holds from the next
    /// step. Afterwards `carry` holds the part for the step before, and `gates` the gradients of
    /// the input's part.
    fn backward(
        gates: [&mut [f32]; GATES],
        kept: &mut [f32],
        before: &[f32],
        gradient: &[f32],
        carry: &mut [f32],
    );

    /// Place of the gradient of the recurrent part after [`Cell::backward`]: the gate, or the kept
    /// value.
    fn recurrent(gate: usize) -> Place;
}

/// Place where gradients of the recurrent part are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Equal to the gradients of the input's part, and stored with them.
    Gate,
    /// Stored in place of the kept values.
    Kept,
}

/// Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000. Gates i, f, g, o;
/// keeps its cells.
pub struct Lstm;

/// The same with the gates of Keras 2: 0.2 x + 0.5, within 0 and 1.
pub struct HardLstm;

/// Cho et al. 2014, with the reset after the product, as in PyTorch and cuDNN. Gates r, z, n; keeps
/// the recurrent part of n.
pub struct Gru;

impl Cell<4> for Lstm {
    const TAKES_KEPT: bool = true;

    fn forward(
        [i, f, g, o]: [&mut [f32]; 4],
        [si, sf, sg, so]: [&[f32]; 4],
        before: &[f32],
        kept: &mut [f32],
        out: &mut [f32],
    ) {
        lstm_forward(i, f, g, o, si, sf, sg, so, before, kept, out);
    }

    fn backward(
        [i, f, g, o]: [&mut [f32]; 4],
        kept: &mut [f32],
        before: &[f32],
        gradient: &[f32],
        carry: &mut [f32],
    ) {
        lstm_backward(i, f, g, o, kept, before, gradient, carry);
    }

    fn recurrent(_: usize) -> Place {
        Place::Gate
    }
}

impl Cell<4> for HardLstm {
    const TAKES_KEPT: bool = true;

    fn forward(
        [i, f, g, o]: [&mut [f32]; 4],
        [si, sf, sg, so]: [&[f32]; 4],
        before: &[f32],
        kept: &mut [f32],
        out: &mut [f32],
    ) {
        hard_lstm_forward(i, f, g, o, si, sf, sg, so, before, kept, out);
    }

    fn backward(
        [i, f, g, o]: [&mut [f32]; 4],
        kept: &mut [f32],
        before: &[f32],
        gradient: &[f32],
        carry: &mut [f32],
    ) {
        hard_lstm_backward(i, f, g, o, kept, before, gradient, carry);
    }

    fn recurrent(_: usize) -> Place {
        Place::Gate
    }
}

impl Cell<3> for Gru {
    const TAKES_KEPT: bool = false;

    fn forward(
        [r, z, n]: [&mut [f32]; 3],
        [sr, sz, sn]: [&[f32]; 3],
        before: &[f32],
        kept: &mut [f32],
        out: &mut [f32],
    ) {
        gru_forward(r, z, n, sr, sz, sn, before, kept, out);
    }

    fn backward(
        [r, z, n]: [&mut [f32]; 3],
        kept: &mut [f32],
        before: &[f32],
        gradient: &[f32],
        carry: &mut [f32],
    ) {
        gru_backward(r, z, n, kept, before, gradient, carry);
    }

    fn recurrent(gate: usize) -> Place {
        if gate == 2 { Place::Kept } else { Place::Gate }
    }
}

vectorized! {
    fn lstm_forward(
        i: &mut [f32], f: &mut [f32], g: &mut [f32], o: &mut [f32],
        si: &[f32], sf: &[f32], sg: &[f32], so: &[f32],
        before: &[f32], cell: &mut [f32], out: &mut [f32],
    ) {
        let n = out.len();
        let (i, f, g, o) = (&mut i[..n], &mut f[..n], &mut g[..n], &mut o[..n]);
        let (si, sf, sg, so) = (&si[..n], &sf[..n], &sg[..n], &so[..n]);
        let (before, cell) = (&before[..n], &mut cell[..n]);
        for u in 0..n {
            i[u] = sigmoid::<FMA>(i[u] + si[u]);
            f[u] = sigmoid::<FMA>(f[u] + sf[u]);
            g[u] = tanh::<FMA>(g[u] + sg[u]);
            o[u] = sigmoid::<FMA>(o[u] + so[u]);
            cell[u] = fma::<FMA>(f[u], before[u], i[u] * g[u]);
            out[u] = o[u] * tanh::<FMA>(cell[u]);
        }
    }

    fn lstm_backward(
        i: &mut [f32], f: &mut [f32], g: &mut [f32], o: &mut [f32],
        cell: &[f32], before: &[f32], gradient: &[f32], carry: &mut [f32],
    ) {
        let n = carry.len();
        let (i, f, g, o) = (&mut i[..n], &mut f[..n], &mut g[..n], &mut o[..n]);
        let (cell, before, gradient) = (&cell[..n], &before[..n], &gradient[..n]);
        for u in 0..n {
            let (input, forget, candidate, output) = (i[u], f[u], g[u], o[u]);
            let squashed = tanh::<FMA>(cell[u]);
            let of_cell = carry[u] + gradient[u] * output * (1.0 - squashed * squashed);
            i[u] = of_cell * candidate * input * (1.0 - input);
            f[u] = of_cell * before[u] * forget * (1.0 - forget);
            g[u] = of_cell * input * (1.0 - candidate * candidate);
            o[u] = gradient[u] * squashed * output * (1.0 - output);
            carry[u] = of_cell * forget;
        }
    }

    fn hard_lstm_forward(
        i: &mut [f32], f: &mut [f32], g: &mut [f32], o: &mut [f32],
        si: &[f32], sf: &[f32], sg: &[f32], so: &[f32],
        before: &[f32], cell: &mut [f32], out: &mut [f32],
    ) {
        let n = out.len();
        let (i, f, g, o) = (&mut i[..n], &mut f[..n], &mut g[..n], &mut o[..n]);
        let (si, sf, sg, so) = (&si[..n], &sf[..n], &sg[..n], &so[..n]);
        let (before, cell) = (&before[..n], &mut cell[..n]);
        for u in 0..n {
            i[u] = hard_sigmoid::<FMA>(i[u] + si[u]);
            f[u] = hard_sigmoid::<FMA>(f[u] + sf[u]);
            g[u] = tanh::<FMA>(g[u] + sg[u]);
            o[u] = hard_sigmoid::<FMA>(o[u] + so[u]);
            cell[u] = fma::<FMA>(f[u], before[u], i[u] * g[u]);
            out[u] = o[u] * tanh::<FMA>(cell[u]);
        }
    }

    fn hard_lstm_backward(
        i: &mut [f32], f: &mut [f32], g: &mut [f32], o: &mut [f32],
        cell: &[f32], before: &[f32], gradient: &[f32], carry: &mut [f32],
    ) {
        let n = carry.len();
        let (i, f, g, o) = (&mut i[..n], &mut f[..n], &mut g[..n], &mut o[..n]);
        let (cell, before, gradient) = (&cell[..n], &before[..n], &gradient[..n]);
        // The slope of a gate, from its value.
        let slope = |gate: f32| if gate > 0.0 && gate < 1.0 { 0.2f32 } else { 0.0 };
        for u in 0..n {
            let (input, forget, candidate, output) = (i[u], f[u], g[u], o[u]);
            let squashed = tanh::<FMA>(cell[u]);
            let of_cell = carry[u] + gradient[u] * output * (1.0 - squashed * squashed);
            i[u] = of_cell * candidate * slope(input);
            f[u] = of_cell * before[u] * slope(forget);
            g[u] = of_cell * input * (1.0 - candidate * candidate);
            o[u] = gradient[u] * squashed * slope(output);
            carry[u] = of_cell * forget;
        }
    }

    fn gru_forward(
        r: &mut [f32], z: &mut [f32], n: &mut [f32], sr: &[f32], sz: &[f32], sn: &[f32],
        before: &[f32], kept: &mut [f32], out: &mut [f32],
    ) {
        let len = out.len();
        let (r, z, n) = (&mut r[..len], &mut z[..len], &mut n[..len]);
        let (sr, sz, sn) = (&sr[..len], &sz[..len], &sn[..len]);
        let (before, kept) = (&before[..len], &mut kept[..len]);
        for u in 0..len {
            r[u] = sigmoid::<FMA>(r[u] + sr[u]);
            z[u] = sigmoid::<FMA>(z[u] + sz[u]);
            n[u] = tanh::<FMA>(fma::<FMA>(r[u], sn[u], n[u]));
            kept[u] = sn[u];
            out[u] = fma::<FMA>(z[u], before[u] - n[u], n[u]);
        }
    }

    fn gru_backward(
        r: &mut [f32], z: &mut [f32], n: &mut [f32], kept: &mut [f32],
        before: &[f32], gradient: &[f32], carry: &mut [f32],
    ) {
        let len = carry.len();
        let (r, z, n) = (&mut r[..len], &mut z[..len], &mut n[..len]);
        let (kept, before, gradient) = (&mut kept[..len], &before[..len], &gradient[..len]);
        for u in 0..len {
            let (reset, update, candidate) = (r[u], z[u], n[u]);
            let of_out = gradient[u] + carry[u];
            let of_candidate = of_out * (1.0 - update) * (1.0 - candidate * candidate);
            r[u] = of_candidate * kept[u] * reset * (1.0 - reset);
            z[u] = of_out * (before[u] - candidate) * update * (1.0 - update);
            n[u] = of_candidate;
            kept[u] = of_candidate * reset;
            carry[u] = of_out * update;
        }
    }
}
