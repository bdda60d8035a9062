//! Tests of the shape of every recipe's batches.

use zoo_recipes::{Document, Selection};

#[test]
fn the_shape_of_every_recipe_can_be_given_as_an_option() {
    for name in zoo_recipes::names() {
        let resolved = Document::load(name).unwrap().resolve(&Selection::default()).unwrap();
        let shape = super::of(&resolved.recipe).shape();
        assert_eq!(shape.to_string().parse(), Ok(shape), "{name}");
    }
}

#[test]
fn a_recipe_has_a_shape() {
    let of = |name: &str| {
        let resolved = Document::load(name).unwrap().resolve(&Selection::default()).unwrap();
        super::of(&resolved.recipe).shape().to_string()
    };
    assert_eq!(of("reversal-transformer"), "64x56");
    assert_eq!(of("multi30k-transformer-tiny"), "128x32");
}
