//! Reads records that are embedded in an HTML report.
//!
//! Owns: where a page holds its document. Must not know: what else the page holds, or what the document contains.

use std::ops::Range;

/// The start of a page. A browser that saves the page writes it in capitals.
const DOCTYPE: &[u8] = b"<!doctype html";
/// The element that holds the document, as `report` writes it. The document is escaped, so that it cannot end the element.
const BEGIN: &str = "<script type=\"application/json\" id=\"document\">";
const END: &str = "</script>";

/// Extracts the document of a page. Other content, and pages without a document, are returned unchanged.
pub(crate) fn unwrapped(mut found: Vec<u8>) -> Vec<u8> {
    if let Some(document) = document(&found) {
        found.truncate(document.end);
        found.drain(..document.start);
    }
    found
}

/// The range of the document in the page.
fn document(found: &[u8]) -> Option<Range<usize>> {
    let begins = found.get(..DOCTYPE.len())?.eq_ignore_ascii_case(DOCTYPE);
    let page = std::str::from_utf8(found).ok().filter(|_| begins)?;
    let start = page.find(BEGIN)? + BEGIN.len();
    let length = page[start..].find(END)?;
    Some(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwrapped(page: &str) -> String {
        String::from_utf8(super::unwrapped(page.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn the_document_is_taken_out_of_a_page() {
        let page = |doctype: &str| {
            format!(
                "{doctype}<title>é</title>{BEGIN}{{\"a\":\"\\u003c\"}}{END}<script>{BEGIN}2{END}</html>\n"
            )
        };
        for doctype in
            ["<!doctype html>\n", "<!DOCTYPE html>", "<!doctype html SYSTEM \"about:legacy-compat\">"]
        {
            assert_eq!(unwrapped(&page(doctype)), "{\"a\":\"\\u003c\"}", "{doctype}");
        }
        assert_eq!(unwrapped(&page("")), page(""), "no page");
    }

    #[test]
    fn what_is_no_page_or_holds_no_document_stays_as_it_is() {
        let cut_off = format!("<!doctype html>{BEGIN}{{");
        for text in ["", "{}", "<!doctype", "<!doctype html><p>no document</p>", &cut_off] {
            assert_eq!(unwrapped(text), text);
        }
        let bytes = [b"<!doctype html>\xff".as_slice(), BEGIN.as_bytes(), END.as_bytes()].concat();
        assert_eq!(super::unwrapped(bytes.clone()), bytes, "a page is UTF-8");
    }
}
