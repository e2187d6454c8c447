//! The types of functions in words of LLVM, as SPADE's reporter `LLVMTrace` has them.
//!
//! A pointer is `ptr` (LLVM 15 and later). `?` is a type whose values are not recorded.

use crate::shapes::Shape;
use crate::signatures::FunctionSignature;

/// The type of a function: `i32(ptr,?)`.
pub(crate) fn function_type(signature: &FunctionSignature) -> String {
    let result = signature
        .result
        .as_ref()
        .map_or("void".to_owned(), value_type);
    let parameters = signature.parameters.iter();
    let parameters: Vec<String> = parameters.map(|one| value_type(&one.shape)).collect();
    format!("{result}({})", parameters.join(","))
}

fn value_type(shape: &Shape) -> String {
    match shape {
        Shape::Signed(bytes) | Shape::Unsigned(bytes) => format!("i{}", 8 * u32::from(*bytes)),
        Shape::Float(4) => "float".to_owned(),
        Shape::Float(_) => "double".to_owned(),
        Shape::Text | Shape::Pointer(_) => "ptr".to_owned(),
        Shape::Unknown | Shape::Structure(..) => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signatures::Parameter;

    #[test]
    fn a_type_has_the_words_of_llvm() {
        let parameter = |shape| Parameter {
            name: String::new(),
            shape,
            target: None,
            places: Vec::new(),
        };
        let shapes = [
            Shape::Text,
            Shape::Signed(4),
            Shape::Unsigned(1),
            Shape::Float(4),
            Shape::Float(8),
            Shape::Unknown,
        ];
        let mut signature = FunctionSignature {
            parameters: shapes.map(parameter).into(),
            ..FunctionSignature::default()
        };
        let words = "(ptr,i32,i8,float,double,?)";
        assert_eq!(function_type(&signature), format!("void{words}"));
        signature.result = Some(Shape::Pointer(None));
        assert_eq!(function_type(&signature), format!("ptr{words}"));
    }
}
