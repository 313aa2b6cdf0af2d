//! References in style sheets, found by a tokenizer: everything between them stays as it was, byte for byte.

use cssparser::{ParseError, Parser, ParserInput, ToCss, Token, serialize_string};

/// Blocks within blocks, at most: what is nested deeper stays as it is. Each costs a part of the stack, and strangers
/// may write as many as they like.
const DEPTH_MAX: usize = 64;

/// A reference in a style sheet: from where to where it stands, and what it says.
struct Found {
    from: usize,
    to: usize,
    reference: String,
    /// Whether only its text is a string, as in `@import "a.css"`, and not all of a `url()`.
    is_string: bool,
}

/// The style sheet with each reference as `link` writes it; what it gives none for stays. None if nothing changes.
///
/// The same goes for the declarations of a `style` attribute.
pub fn rewrite(css: &str, mut link: impl FnMut(&str) -> Option<String>) -> Option<String> {
    let mut found = Vec::new();
    let mut input = ParserInput::new(css);
    let mut parser = Parser::new(&mut input);
    collect(&mut parser, &mut found, DEPTH_MAX);
    let mut written = String::with_capacity(css.len());
    let mut done = 0;
    for Found { from, to, reference, is_string } in found {
        let Some(linked) = link(&reference).filter(|linked| *linked != reference) else { continue };
        let mut token = String::new();
        let serialized = if is_string {
            serialize_string(&linked, &mut token)
        } else {
            Token::UnquotedUrl(linked.as_str().into()).to_css(&mut token)
        };
        let (Ok(()), Some(before)) = (serialized, css.get(done..from)) else { continue };
        written.push_str(before);
        // In a page, `</style` would end the sheet.
        written.push_str(&token.replace('<', "\\3c "));
        done = to;
    }
    if done == 0 {
        return None;
    }
    written.push_str(css.get(done..).unwrap_or_default());
    Some(written)
}

/// `depth`: so many blocks more may be entered.
fn collect(parser: &mut Parser<'_, '_>, found: &mut Vec<Found>, depth: usize) {
    let mut is_import = false;
    loop {
        parser.skip_whitespace();
        let from = parser.position().byte_index();
        let Ok(token) = parser.next_including_whitespace_and_comments() else { return };
        let was_import = std::mem::replace(&mut is_import, false);
        let (reference, is_string) = match token {
            Token::AtKeyword(name) => {
                is_import = name.eq_ignore_ascii_case("import");
                continue;
            }
            // Between the keyword and what it imports.
            Token::Comment(_) => {
                is_import = was_import;
                continue;
            }
            Token::UnquotedUrl(url) => (url.to_string(), false),
            Token::QuotedString(text) if was_import => (text.to_string(), true),
            Token::Function(name) if name.eq_ignore_ascii_case("url") || name.eq_ignore_ascii_case("src") => {
                let text: Result<String, ParseError<'_, ()>> =
                    parser.parse_nested_block(|inside| Ok(inside.expect_string()?.to_string()));
                let Ok(text) = text else { continue };
                (text, false)
            }
            Token::Function(name) => {
                // The strings of `image-set()` are references too.
                let are_images = name.to_ascii_lowercase().ends_with("image-set");
                nested(parser, found, are_images, depth);
                continue;
            }
            Token::ParenthesisBlock | Token::SquareBracketBlock | Token::CurlyBracketBlock => {
                nested(parser, found, false, depth);
                continue;
            }
            _ => continue,
        };
        let to = parser.position().byte_index();
        found.push(Found { from, to, reference, is_string });
    }
}

fn nested(parser: &mut Parser<'_, '_>, found: &mut Vec<Found>, are_images: bool, depth: usize) {
    // A block that isn't entered is passed over as a whole.
    let Some(depth) = depth.checked_sub(1) else { return };
    let _ended: Result<(), ParseError<'_, ()>> = parser.parse_nested_block(|inside| {
        if are_images {
            images(inside, found);
        } else {
            collect(inside, found, depth);
        }
        Ok(())
    });
}

/// The references of an `image-set()`; `type("image/png")` is none.
fn images(parser: &mut Parser<'_, '_>, found: &mut Vec<Found>) {
    loop {
        parser.skip_whitespace();
        let from = parser.position().byte_index();
        let Ok(token) = parser.next() else { return };
        let (reference, is_string) = match token {
            Token::QuotedString(text) => (text.to_string(), true),
            Token::UnquotedUrl(url) => (url.to_string(), false),
            Token::Function(name) if name.eq_ignore_ascii_case("url") => {
                let text: Result<String, ParseError<'_, ()>> =
                    parser.parse_nested_block(|inside| Ok(inside.expect_string()?.to_string()));
                let Ok(text) = text else { continue };
                (text, false)
            }
            _ => continue,
        };
        let to = parser.position().byte_index();
        found.push(Found { from, to, reference, is_string });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(css: &str) -> String {
        rewrite(css, |reference| (!reference.starts_with("data:")).then(|| format!("/r/{reference}")))
            .unwrap_or_else(|| css.to_owned())
    }

    #[test]
    fn references_are_found_wherever_they_stand() {
        for (css, expected) in [
            ("a{b:url(x.png)}", "a{b:url(/r/x.png)}"),
            ("a{b:url( 'x.png' )}", "a{b:url(/r/x.png)}"),
            ("a{b:url(\"x y.png\") no-repeat}", "a{b:url(/r/x\\20 y.png) no-repeat}"),
            (
                "@import 'a.css';@import url(b.css) print;",
                "@import \"/r/a.css\";@import url(/r/b.css) print;",
            ),
            ("@import/**/ \"a.css\" layer(x);", "@import/**/ \"/r/a.css\" layer(x);"),
            (
                "@font-face{src:url(a.woff2)format('woff2'),url(b.woff)}",
                "@font-face{src:url(/r/a.woff2)format('woff2'),url(/r/b.woff)}",
            ),
            ("@media (x){@supports(y){a{b:URL(x.png)}}}", "@media (x){@supports(y){a{b:url(/r/x.png)}}}"),
            ("a{b:image-set('x.png' 1x,url(y.png) 2x)}", "a{b:image-set(\"/r/x.png\" 1x,url(/r/y.png) 2x)}"),
            (
                "a{--x:url(x.png);mask:cross-fade(url(y.png))}",
                "a{--x:url(/r/x.png);mask:cross-fade(url(/r/y.png))}",
            ),
            ("b:url(x.png)", "b:url(/r/x.png)"),
            ("a{b:url(x.png", "a{b:url(/r/x.png)"),
        ] {
            assert_eq!(rewritten(css), expected, "{css}");
        }
    }

    #[test]
    fn what_only_looks_like_a_reference_stays() {
        for css in [
            "/* url(x.png) */ a{content:'url(x.png)'}",
            "a{b:url(data:image/png;base64,AA==)}",
            "a[href='x.png']{b:c}",
            "a{b:image-set('data:x' type('image/png') 1x)}",
            "a{b:url(x.png y)}",
            "\u{feff}a{b:c}",
            "",
        ] {
            assert_eq!(rewritten(css), css);
        }
    }

    #[test]
    fn blocks_without_end_are_no_danger_to_the_stack() {
        for open in ["(", "{", "[", "a(", "image-set("] {
            let css = format!("{}url(x.png)", open.repeat(200_000));
            assert_eq!(rewritten(&css), css, "{open}");
        }
        let css = format!("{}b:url(x.png){}", "a{".repeat(60), "}".repeat(60));
        assert_eq!(rewritten(&css), css.replace("x.png", "/r/x.png"), "no sheet is nested like that");
    }

    #[test]
    fn everything_between_stays_as_it_was() {
        let css = "a { color : red ; }\r\n/* é */\tb{c:url(x.png)}<!-- -->}}\u{1f600} d";
        assert_eq!(rewritten(css), css.replace("x.png", "/r/x.png"));
    }

    #[test]
    fn what_is_written_can_not_leave_its_place() {
        let written = rewrite("a{b:url(x)}", |_| Some("a)b'c\"d\\e\n</style>".to_owned())).unwrap();
        assert!(!written.contains("</style"), "{written}");
        let read = rewrite(&written, |reference| {
            assert_eq!(reference, "a)b'c\"d\\e\n</style>");
            None
        });
        assert_eq!(read, None);
    }
}
