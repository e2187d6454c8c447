//! Counts the vertices and faces of a Wavefront mesh, and tells which vertices moved.

wit_bindgen::generate!({
    path: "../../crates/inspect/wit",
    world: "inspector",
});

use serde_json::json;

struct MeshInspector;

/// The vertices and the number of faces of a mesh.
struct Mesh {
    vertices: Vec<[f64; 3]>,
    faces: usize,
}

fn read(content: &[u8]) -> Result<Mesh, String> {
    let text = std::str::from_utf8(content).map_err(|_| "it is no text")?;
    let mut mesh = Mesh { vertices: Vec::new(), faces: 0 };
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("v") => {
                let wrong = || format!("line {number}: a vertex has three numbers");
                let mut vertex = [0.0; 3];
                for place in &mut vertex {
                    *place = words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
                }
                mesh.vertices.push(vertex);
            }
            Some("f") => mesh.faces += 1,
            _ => {}
        }
    }
    Ok(mesh)
}

/// "1 vertex" or "3 vertices".
fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

impl Guest for MeshInspector {
    fn facts(_name: String, content: Vec<u8>) -> Result<String, String> {
        let mesh = read(&content)?;
        Ok(json!({ "vertices": mesh.vertices.len(), "faces": mesh.faces }).to_string())
    }

    fn changes(_name: String, old: Vec<u8>, new: Vec<u8>) -> Result<(Vec<String>, String), String> {
        let old = read(&old).map_err(|why| format!("the first content: {why}"))?;
        let new = read(&new).map_err(|why| format!("the second content: {why}"))?;
        let moved = old.vertices.iter().zip(&new.vertices).filter(|(a, b)| a != b).count();
        let mut sentences = Vec::new();
        if moved > 0 {
            sentences.push(format!("{} moved", counted(moved, "vertex", "vertices")));
        }
        for (what, before, after) in [
            ("vertices", old.vertices.len(), new.vertices.len()),
            ("faces", old.faces, new.faces),
        ] {
            if before != after {
                sentences.push(format!("{what}: {before} → {after}"));
            }
        }
        Ok((sentences, json!({ "moved": moved }).to_string()))
    }
}

export!(MeshInspector);
