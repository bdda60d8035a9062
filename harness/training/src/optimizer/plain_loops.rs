//! Every update rule on the host, whose loops run in vectors, against one plain loop per rule, bit
//! for bit.

use zoo_recipes::{NovogradVariant, Velocity};

use super::*;
use crate::agreement::rules;
use crate::flat::CHUNK;

/// Numbers of values: none, less and more than whole vectors, and more than a chunk.
const SIZES: [usize; 7] = [0, 1, 15, 16, 17, 1000, CHUNK + 17];
const UPDATES: i32 = 4;
const FACTOR: f32 = 0.7;
/// Square sum of the gradients, which NovoGrad is given.
const SQUARE_SUM: f64 = 0.5;

/// a b + c.
type AddProduct = fn(f32, f32, f32) -> f32;

fn unfused(a: f32, b: f32, c: f32) -> f32 {
    a * b + c
}

/// Bits of the weights and of the arrays of the state, by name.
type Bits = BTreeMap<String, Vec<u32>>;

/// Name of an array of the state, and its number of one weight.
type Array = (&'static str, fn(&Value) -> f32);

/// One weight and its state.
#[derive(Clone, Copy)]
struct Value {
    w: f32,
    first: f32,
    second: f32,
}

/// The rules of the comparison with devices, and SGD with either momentum or decay alone.
fn all_rules() -> Vec<(&'static str, OptimizerSpec)> {
    let sgd = |momentum, weight_decay| OptimizerSpec::Sgd {
        momentum,
        weight_decay,
        nesterov: false,
        velocity: Velocity::Gradients,
    };
    let steps =
        OptimizerSpec::Sgd { momentum: 0.9, weight_decay: 0.0, nesterov: false, velocity: Velocity::Steps };
    let sums = OptimizerSpec::Novograd {
        beta1: 0.95,
        beta2: 0.98,
        epsilon: 1e-8,
        weight_decay: 0.001,
        grad_averaging: false,
        variant: NovogradVariant::Published,
    };
    let more = [
        ("sgd with decay", sgd(0.0, 0.01)),
        ("sgd with momentum", sgd(0.9, 0.0)),
        ("sgd with sums of steps", steps),
        ("novograd without averaging", sums),
    ];
    rules().into_iter().chain(more).collect()
}

/// Numbers of both signs; some have squares that are subnormal or 0.
fn values(n: usize, stream: i32) -> Vec<f32> {
    let draw = |i: usize| ((i * 7919 + stream as usize * 104_729) % 10_007) as f32 / 10_007.0 - 0.5;
    (0..n).map(|i| draw(i) * [1.0, 1.0, 1e-3, 1e-21, 0.0, 100.0][(i + stream as usize) % 6]).collect()
}

fn lr(update: i32) -> f64 {
    0.01 * f64::from(update)
}

/// Updates by the rule. It keeps the memory of the weights.
fn by_rule(spec: &OptimizerSpec, n: usize) -> Bits {
    let mut rule = optimizer(spec);
    let weights = values(n, 0);
    let memory = weights.as_ptr();
    let mut weights = Flat::Host(weights);
    for update in 1..=UPDATES {
        rule.begin();
        let place = Place { path: "w", shape: &[1, n], embedding: false };
        let gradient = Flat::Host(values(n, update));
        let gradient = Gradient { values: gradient, factor: FACTOR, square_sum: Some(SQUARE_SUM) };
        weights = rule.step(place, lr(update), weights, gradient);
    }
    let Flat::Host(weights) = weights else { panic!("the weights are on the host") };
    assert_eq!(weights.as_ptr(), memory, "the weights are updated in place");
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect();
    let moments = rule.export().moments.into_iter();
    // NovoGrad's second array is one number, not one for each weight.
    let of_values =
        moments.filter(|moment| !(matches!(spec, OptimizerSpec::Novograd { .. }) && moment.name == "second"));
    let mut found: Bits = of_values.map(|moment| (moment.name, bits(moment.values))).collect();
    found.insert("weights".to_owned(), bits(weights));
    found
}

/// Updates value by value.
fn by_plain_loop(spec: &OptimizerSpec, n: usize, add_product: AddProduct) -> Bits {
    let first = match spec {
        OptimizerSpec::Adagrad { initial_accumulator } => *initial_accumulator as f32,
        _ => 0.0,
    };
    let mut values_of: Vec<Value> =
        values(n, 0).into_iter().map(|w| Value { w, first, second: 0.0 }).collect();
    let mut square = None;
    for update in 1..=UPDATES {
        let scale = novograd_scale(spec, &mut square);
        for (value, g) in values_of.iter_mut().zip(values(n, update)) {
            step(spec, update, scale, value, g, add_product);
        }
    }
    let arrays: &[Array] = match spec {
        OptimizerSpec::Adam { .. } | OptimizerSpec::LazyAdam { .. } | OptimizerSpec::Adamw { .. } => {
            &[("first", |v| v.first), ("second", |v| v.second)]
        }
        OptimizerSpec::Sgd { momentum: 0.0, .. } => &[],
        OptimizerSpec::Sgd { .. } => &[("velocity", |v| v.first)],
        OptimizerSpec::Rmsprop { .. } | OptimizerSpec::Adagrad { .. } => &[("squares", |v| v.first)],
        OptimizerSpec::Adadelta { .. } => &[("squares", |v| v.first), ("steps", |v| v.second)],
        OptimizerSpec::Novograd { .. } => &[("first", |v| v.first)],
    };
    let bits = |of: fn(&Value) -> f32| values_of.iter().map(|value| of(value).to_bits()).collect();
    let mut found: Bits = arrays.iter().map(|(name, of)| ((*name).to_owned(), bits(*of))).collect();
    found.insert("weights".to_owned(), bits(|v| v.w));
    found
}

/// Factor of NovoGrad's gradients, from the squared norms so far.
fn novograd_scale(spec: &OptimizerSpec, before: &mut Option<f32>) -> f32 {
    let OptimizerSpec::Novograd { beta2, epsilon, variant, .. } = *spec else { return FACTOR };
    let square = SQUARE_SUM * f64::from(FACTOR).powi(2);
    let next = match (variant, *before) {
        (NovogradVariant::Published, Some(before)) => beta2 * f64::from(before) + (1.0 - beta2) * square,
        _ => square,
    } as f32;
    *before = Some(next);
    let norm = match variant {
        NovogradVariant::Published => f64::from(next).sqrt() + epsilon,
        NovogradVariant::AsCoded => (f64::from(next) + epsilon).sqrt(),
    };
    (f64::from(FACTOR) / norm) as f32
}

/// One update of one value. `scale` is the factor of the gradient.
fn step(spec: &OptimizerSpec, update: i32, scale: f32, value: &mut Value, g: f32, add_product: AddProduct) {
    let (lr, t) = (lr(update), f64::from(update));
    let Value { w, first, second } = value;
    // Adam with coefficients in the order beta1, beta2, epsilon, decay in the gradient, decay
    // apart.
    let mut adam = |[beta1, beta2, epsilon, decay, apart]: [f64; 5], place: EpsilonPlace| {
        let (one, two) = (1.0 - beta1.powf(t), 1.0 - beta2.powf(t));
        let (root, rate) = match place {
            EpsilonPlace::CorrectedRoot => (two.sqrt() as f32, (lr / one) as f32),
            EpsilonPlace::RawRoot => (1.0, (lr * two.sqrt() / one) as f32),
        };
        let g = add_product(g, scale, *w * decay as f32);
        *first = add_product(*first, beta1 as f32, g * (1.0 - beta1) as f32);
        *second = add_product(*second, beta2 as f32, g * g * (1.0 - beta2) as f32);
        let moved = *first / (second.sqrt() / root + epsilon as f32) * rate;
        *w = add_product(*w, (1.0 - lr * apart) as f32, -moved);
    };
    match *spec {
        OptimizerSpec::Adam { beta1, beta2, epsilon, epsilon_place, weight_decay } => {
            adam([beta1, beta2, epsilon, weight_decay, 0.0], epsilon_place);
        }
        OptimizerSpec::LazyAdam { beta1, beta2, epsilon, epsilon_place } => {
            adam([beta1, beta2, epsilon, 0.0, 0.0], epsilon_place);
        }
        OptimizerSpec::Adamw { beta1, beta2, epsilon, weight_decay, .. } => {
            adam([beta1, beta2, epsilon, 0.0, weight_decay], EpsilonPlace::CorrectedRoot);
        }
        OptimizerSpec::Sgd { momentum, weight_decay, nesterov, velocity } => {
            let g = g * scale;
            let g = if weight_decay == 0.0 { g } else { add_product(*w, weight_decay as f32, g) };
            let (g, rate) = match velocity {
                Velocity::Gradients => (g, lr as f32),
                Velocity::Steps => (g * lr as f32, 1.0),
            };
            if momentum == 0.0 {
                *w = add_product(g, -rate, *w);
                return;
            }
            *first = add_product(*first, momentum as f32, g);
            let moved = if nesterov { add_product(*first, momentum as f32, g) } else { *first };
            *w = add_product(moved, -rate, *w);
        }
        OptimizerSpec::Rmsprop { rho, epsilon } => {
            let g = g * scale;
            *first = add_product(*first, rho as f32, g * g * (1.0 - rho) as f32);
            *w -= g * lr as f32 / (first.sqrt() + epsilon as f32);
        }
        OptimizerSpec::Adagrad { .. } => {
            let g = g * scale;
            *first = add_product(g, g, *first);
            *w -= g * lr as f32 / first.sqrt();
        }
        OptimizerSpec::Adadelta { rho, epsilon } => {
            let (g, rho, rest, epsilon) = (g * scale, rho as f32, (1.0 - rho) as f32, epsilon as f32);
            *first = add_product(*first, rho, g * g * rest);
            let moved = g * (*second + epsilon).sqrt() / (*first + epsilon).sqrt();
            *second = add_product(*second, rho, moved * moved * rest);
            *w = add_product(moved, -(lr as f32), *w);
        }
        OptimizerSpec::Novograd { beta1, weight_decay, grad_averaging, .. } => {
            let share = if grad_averaging { (1.0 - beta1) as f32 } else { 1.0 };
            let added = add_product(g, scale, *w * weight_decay as f32) * share;
            *first = add_product(*first, beta1 as f32, added);
            *w = add_product(*first, -(lr as f32), *w);
        }
    }
}

#[test]
fn every_rule_has_the_bits_of_a_plain_loop_at_every_size() {
    for (name, spec) in all_rules() {
        for n in SIZES {
            assert!(by_rule(&spec, n) == by_plain_loop(&spec, n, unfused), "{name}: {n} values");
        }
    }
}

#[test]
fn a_fused_product_would_be_seen_in_every_rule() {
    for (name, spec) in all_rules() {
        let fused = by_plain_loop(&spec, 1000, f32::mul_add);
        assert!(by_rule(&spec, 1000) != fused, "{name}");
    }
}
