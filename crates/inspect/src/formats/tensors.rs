//! Weights of a model (safetensors): tensors with type, shape and a digest of their values.

use backstory_inspection::file_parts::{PartAnswer, PartName};
use safetensors::SafeTensors;
use serde_json::json;

use crate::parts::tensor_value;
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct TensorFile;

impl Inspector for TensorFile {
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        tensor_value::place(content.bytes, name)
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let (_, head) = SafeTensors::read_metadata(content.bytes).map_err(UnreadableContent::of)?;
        let file = SafeTensors::deserialize(content.bytes).map_err(UnreadableContent::of)?;
        let mut facts = FileFacts::default();
        let mut metadata: Vec<_> = head.metadata().iter().flatten().collect();
        metadata.sort();
        for (name, value) in metadata {
            facts.value(&format!("metadata {name}"), value.as_str());
        }
        let mut tensors: Vec<_> = file.iter().collect();
        tensors.sort_by(|a, b| a.0.cmp(b.0));
        let count = |shape: &[usize]| shape.iter().copied().fold(1usize, usize::saturating_mul);
        let parameters = tensors.iter().map(|(_, tensor)| count(tensor.shape()));
        facts.value("parameters", parameters.fold(0usize, usize::saturating_add));
        let told = tensors.into_iter().map(|(name, tensor)| {
            let told = json!({
                "dtype": format!("{:?}", tensor.dtype()),
                "shape": tensor.shape(),
                "values": blake3::hash(tensor.data()).to_hex().as_str(),
            });
            (name.to_owned(), told)
        });
        facts.parts(("tensor", "tensors"), told.collect::<Vec<_>>());
        Ok(facts)
    }
}
