//! A cell of a Jupyter notebook, or a part of one: `3`, `3.source`, `setup.outputs[0]`.
//!
//! Cells count from 1, as `inspect` names them. A cell may be named by its id, too.

use backstory_inspection::file_parts::{NoPart, PartAnswer, PartPlace};
use serde::Deserialize;

use super::member_path::{MemberPath, PathStep};
use super::{absent, json_value, marked_text, unreadable};

/// The place of a cell.
///
/// # Errors
/// The content is no notebook, or has no such cell.
pub fn place(content: &[u8], name: &str) -> PartAnswer {
    let (cell, rest) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
    let rest = MemberPath::read(&format!("${rest}"))?.0;
    if cell.is_empty() {
        let how = "give the number of a cell from 1, and what of it, as in 3 or 3.outputs";
        return Err(NoPart::Misnamed(how.to_owned()));
    }
    let (start, text) = marked_text(content)?;
    let notebook: Notebook = serde_json::from_str(text).map_err(unreadable)?;
    let (mut steps, cells) = notebook.cells()?;
    let by_number = cell
        .parse()
        .ok()
        .and_then(|number: usize| number.checked_sub(1));
    let by_id = || cells.iter().position(|one| one.id.as_deref() == Some(cell));
    let number = by_number.filter(|number| *number < cells.len());
    let number = number.or_else(by_id).ok_or_else(|| {
        absent(format!(
            "it has {} cells, and none is `{cell}`",
            cells.len()
        ))
    })?;
    steps.push(PathStep::Item(number));
    steps.extend(rest);
    let found = json_value::find(text, &steps)?;
    Ok(PartPlace {
        name: Some(format!("cell {name}")),
        ..PartPlace::exact(start + found.start..start + found.end)
    })
}

/// The fields of a notebook in which its cells are.
#[derive(Deserialize)]
struct Notebook {
    cells: Option<Vec<NotebookCell>>,
    /// Formats before version 4.
    #[serde(default)]
    worksheets: Vec<Worksheet>,
}

#[derive(Deserialize)]
struct Worksheet {
    cells: Vec<NotebookCell>,
}

#[derive(Deserialize)]
struct NotebookCell {
    id: Option<String>,
}

impl Notebook {
    /// The path of the list of cells, and the list.
    fn cells(&self) -> Result<(Vec<PathStep>, &[NotebookCell]), NoPart> {
        let name = |name: &str| PathStep::Name(name.to_owned());
        match (&self.cells, self.worksheets.first()) {
            (Some(cells), _) => Ok((vec![name("cells")], cells)),
            (None, Some(sheet)) => {
                let path = vec![name("worksheets"), PathStep::Item(0), name("cells")];
                Ok((path, &sheet.cells))
            }
            (None, None) => Err(unreadable("it has no cells")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r##"{"nbformat": 4, "cells": [
        {"id": "top", "cell_type": "markdown", "source": "# A"},
        {"id": "7", "cell_type": "code", "source": ["x = 1\n", "x"],
         "outputs": [{"text": "1"}, {"data": {"image/png": "aGk="}}]}]}"##;

    #[test]
    fn a_cell_is_found_by_number_or_id_with_what_is_in_it() {
        let text = |name: &str| place(TEXT.as_bytes(), name).map(|at| &TEXT[at.ranges[0].clone()]);
        for (name, expected) in [
            ("1.source", "# A"),
            ("top.source", "# A"),
            ("2.source", "[\"x = 1\\n\", \"x\"]"),
            ("2.outputs[1].data[\"image/png\"]", "aGk="),
            ("7.outputs[0].text", "1"),
        ] {
            assert_eq!(text(name), Ok(expected), "{name}");
        }
        assert!(text("1").unwrap().starts_with("{\"id\": \"top\""));
        assert!(matches!(text("3"), Err(NoPart::Absent(_))));
        assert!(matches!(text("0"), Err(NoPart::Absent(_))));
        assert!(matches!(text("1.outputs"), Err(NoPart::Absent(_))));
        for bad in ["", ".source", "[0]", "1.", "1[x]"] {
            assert!(matches!(text(bad), Err(NoPart::Misnamed(_))), "{bad}");
        }
    }

    #[test]
    fn a_notebook_of_an_old_format_has_its_cells_in_a_worksheet() {
        let old = r#"{"worksheets": [{"cells": [{"input": "y"}]}], "nbformat": 3}"#;
        let at = place(old.as_bytes(), "1.input").unwrap();
        assert_eq!(&old[at.ranges[0].clone()], "y");
        let none = place(b"{}", "1");
        assert!(matches!(none, Err(NoPart::Unreadable(_))));
    }
}
