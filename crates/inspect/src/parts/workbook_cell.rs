//! A cell of a workbook: .xlsx and .ods.
//!
//! A cell lies in the member of its sheet. A text of .xlsx may lie in the member of the shared
//! strings, too. In an archive with compressed members, their data are the finest true answer.

use std::ops::{ControlFlow, Range};

use backstory_inspection::file_parts::{NoPart, PartAnswer, PartPlace};

use super::cell_reference::{self, CellReference};
use super::zip_member::{self, XmlMember};
use super::{absent, unreadable};
use crate::formats::markup::{DocumentParts, PlacedTag, attribute, walk_tags};

const WORKBOOK: &str = "xl/workbook.xml";
const RELATIONS: &str = "xl/_rels/workbook.xml.rels";
const OPEN_DOCUMENT: &str = "content.xml";

/// The most names of sheets in an answer.
const NAMED: usize = 20;

/// The place of a cell. Without a sheet in the name, the first one is meant.
///
/// # Errors
/// The content is no workbook, or has no such sheet, or no value in the cell.
pub fn place(content: &[u8], name: &str) -> PartAnswer {
    let wanted = CellReference::read(name)?;
    let mut document = DocumentParts::open(content)?;
    let (sheet, parts) = match document.place(OPEN_DOCUMENT)? {
        Some(_) => in_open_document(&mut document, &wanted)?,
        None => in_office_workbook(&mut document, &wanted)?,
    };
    let cell = cell_reference::name(wanted.row, wanted.column);
    Ok(PartPlace {
        name: Some(format!("{sheet}!{cell}")),
        ..zip_member::within(content, &parts)?
    })
}

type SheetParts = (String, Vec<(XmlMember, Range<usize>)>);

/// The number of the sheet that is meant.
fn chosen(sheets: &[String], wanted: &CellReference) -> Result<usize, NoPart> {
    let number = match &wanted.sheet {
        None => (!sheets.is_empty()).then_some(0),
        Some(name) => sheets.iter().position(|sheet| sheet == name),
    };
    number.ok_or_else(|| {
        let names: Vec<String> = sheets
            .iter()
            .take(NAMED)
            .map(|one| format!("`{one}`"))
            .collect();
        let more = if sheets.len() > NAMED { ", …" } else { "" };
        absent(match &wanted.sheet {
            Some(name) => format!("it has no sheet `{name}`, but {}{more}", names.join(", ")),
            None => "it has no sheets".to_owned(),
        })
    })
}

fn empty(sheet: &str, wanted: &CellReference) -> NoPart {
    let cell = cell_reference::name(wanted.row, wanted.column);
    absent(format!("sheet `{sheet}` has no value in {cell}"))
}

fn in_office_workbook(
    document: &mut DocumentParts<'_>,
    wanted: &CellReference,
) -> Result<SheetParts, NoPart> {
    let mut ids = Vec::new();
    let mut names = Vec::new();
    each_start(
        &XmlMember::read(document, WORKBOOK)?.text,
        |name, attribute| {
            if name == "sheet" {
                names.push(attribute("name").unwrap_or_default());
                ids.push(attribute("id"));
            }
        },
    )?;
    let number = chosen(&names, wanted)?;
    let (mut sheet, mut strings) = (None, None);
    each_start(
        &XmlMember::read(document, RELATIONS)?.text,
        |name, attribute| {
            if name != "Relationship" {
                return;
            }
            let target = attribute("Target").map(|target| member_name(&target));
            if attribute("Id") == ids[number] {
                sheet = target;
            } else if attribute("Type").is_some_and(|kind| kind.ends_with("/sharedStrings")) {
                strings = target;
            }
        },
    )?;
    let no_sheet = || unreadable(format!("sheet `{}` leads to no member", names[number]));
    let sheet = XmlMember::read(document, &sheet.ok_or_else(no_sheet)?)?;
    let cell = OfficeCells::default().find(&sheet.text, wanted)?;
    let cell = cell.ok_or_else(|| empty(&names[number], wanted))?;
    let string = cell.is_shared.then(|| {
        let name = strings.ok_or_else(|| unreadable("it has no shared strings"))?;
        let strings = XmlMember::read(document, &name)?;
        let index = sheet.text[cell.value.clone()].trim().parse().ok();
        let found = index.map(|index| nth_element(&strings.text, "si", index));
        let range = found.transpose()?.flatten();
        let range = range.ok_or_else(|| unreadable("a cell leads to no shared string"))?;
        Ok::<_, NoPart>((strings, range))
    });
    let mut parts = vec![(sheet, cell.value)];
    parts.extend(string.transpose()?);
    Ok((names[number].clone(), parts))
}

/// The member that a relation of the workbook leads to.
fn member_name(target: &str) -> String {
    match target.strip_prefix('/') {
        Some(absolute) => absolute.to_owned(),
        None => format!("xl/{}", target.trim_start_matches("./")),
    }
}

/// Calls `visit` for each start of an element, with its name and its attributes.
fn each_start(
    xml: &str,
    mut visit: impl FnMut(&str, &dyn Fn(&str) -> Option<String>),
) -> Result<(), NoPart> {
    walk_tags(xml, |tag| {
        if let PlacedTag::Begin(element, _) = &tag {
            visit(tag.name(), &|name| attribute(element, name));
        }
        ControlFlow::<()>::Continue(())
    })?;
    Ok(())
}

/// The inner range of the element with this name and number.
fn nth_element(xml: &str, name: &str, number: usize) -> Result<Option<Range<usize>>, NoPart> {
    let (mut seen, mut start) = (0, None);
    let found = walk_tags(xml, |tag| {
        if tag.name() != name {
            return ControlFlow::Continue(());
        }
        match tag {
            PlacedTag::Begin(_, behind) => {
                start = (seen == number).then_some(behind);
                seen += 1;
            }
            PlacedTag::End(_, before) => {
                if let Some(start) = start {
                    return ControlFlow::Break(start..before);
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// A cell of .xlsx.
struct OfficeCell {
    /// The text of its value, or its whole inner range.
    value: Range<usize>,
    /// The value is the number of a shared string.
    is_shared: bool,
}

/// A walk through the cells of a sheet. Cells and rows without a name follow the ones before.
#[derive(Default)]
struct OfficeCells {
    next_row: usize,
    next_column: usize,
    /// The start of the wanted cell, and whether its value is a shared string.
    open: Option<(usize, bool)>,
    value_start: Option<usize>,
    value: Option<Range<usize>>,
}

impl OfficeCells {
    fn find(mut self, xml: &str, wanted: &CellReference) -> Result<Option<OfficeCell>, NoPart> {
        let found = walk_tags(xml, |tag| match (&tag, tag.name()) {
            (PlacedTag::Begin(element, _), "row") => {
                let given = attribute(element, "r").and_then(|row| row.parse().ok());
                self.next_row = given.unwrap_or(self.next_row.saturating_add(1));
                self.next_column = 0;
                ControlFlow::Continue(())
            }
            (PlacedTag::Begin(element, behind), "c") => {
                let given = attribute(element, "r");
                let given = given.and_then(|name| cell_reference::column_and_row(&name));
                let (column, row) =
                    given.unwrap_or((self.next_column, self.next_row.saturating_sub(1)));
                self.next_column = column + 1;
                let is_shared = attribute(element, "t").as_deref() == Some("s");
                let is_wanted = (column, row) == (wanted.column, wanted.row);
                self.open = is_wanted.then_some((*behind, is_shared));
                ControlFlow::Continue(())
            }
            (PlacedTag::Begin(_, behind), "v" | "is") => {
                self.value_start = self.open.map(|_| *behind);
                ControlFlow::Continue(())
            }
            (PlacedTag::End(_, before), "v" | "is") => {
                let range = self.value_start.take().map(|start| start..*before);
                self.value = range.or(self.value.take());
                ControlFlow::Continue(())
            }
            (PlacedTag::End(_, before), "c") => match self.open.take() {
                Some((start, is_shared)) => ControlFlow::Break((start..*before, is_shared)),
                None => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        })?;
        let value = self.value;
        Ok(found.and_then(|(inner, is_shared)| {
            // A cell may have a format only.
            let value = value.or_else(|| (!inner.is_empty()).then_some(inner))?;
            Some(OfficeCell { value, is_shared })
        }))
    }
}

fn in_open_document(
    document: &mut DocumentParts<'_>,
    wanted: &CellReference,
) -> Result<SheetParts, NoPart> {
    let body = XmlMember::read(document, OPEN_DOCUMENT)?;
    let mut names = Vec::new();
    let mut depth = 0;
    walk_tags(&body.text, |tag| {
        match (&tag, tag.name()) {
            (PlacedTag::Begin(element, _), "table") => {
                if depth == 0 {
                    names.push(attribute(element, "name").unwrap_or_default());
                }
                depth += 1;
            }
            (PlacedTag::End(..), "table") => depth -= 1,
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    })?;
    let number = chosen(&names, wanted)?;
    let found = OpenCells::default().find(&body.text, number, wanted)?;
    let range = found.ok_or_else(|| empty(&names[number], wanted))?;
    Ok((names.swap_remove(number), vec![(body, range)]))
}

/// A walk through the cells of .ods. Rows and cells that are equal stand once, with their number.
#[derive(Default)]
struct OpenCells {
    tables: usize,
    /// Tables around the place: a cell may have one.
    depth: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    open: Option<usize>,
}

impl OpenCells {
    fn find(
        mut self,
        xml: &str,
        table: usize,
        wanted: &CellReference,
    ) -> Result<Option<Range<usize>>, NoPart> {
        let found = walk_tags(xml, |tag| {
            match (&tag, tag.name()) {
                (PlacedTag::Begin(..), "table") => {
                    self.depth += 1;
                    if self.depth == 1 {
                        self.tables += 1;
                        self.rows = 0..0;
                    }
                }
                (PlacedTag::End(..), "table") => self.depth -= 1,
                _ if self.depth != 1 || self.tables != table + 1 => {}
                (PlacedTag::Begin(element, _), "table-row") => {
                    self.rows = following(&self.rows, attribute(element, "number-rows-repeated"));
                    self.columns = 0..0;
                }
                (PlacedTag::Begin(element, behind), "table-cell" | "covered-table-cell") => {
                    let repeated = attribute(element, "number-columns-repeated");
                    self.columns = following(&self.columns, repeated);
                    let is_wanted =
                        self.rows.contains(&wanted.row) && self.columns.contains(&wanted.column);
                    self.open = is_wanted.then_some(*behind);
                }
                (PlacedTag::End(_, before), "table-cell" | "covered-table-cell") => {
                    if let Some(start) = self.open.take() {
                        return ControlFlow::Break(start..*before);
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        Ok(found.filter(|inner| !inner.is_empty()))
    }
}

/// The places after the former ones, as many as the attribute says.
fn following(former: &Range<usize>, repeated: Option<String>) -> Range<usize> {
    let number = repeated.and_then(|text| text.parse().ok()).unwrap_or(1);
    former.end..former.end.saturating_add(number)
}
