//! Rewrites references in style sheets. A tokenizer finds them; all other bytes stay unchanged.

use cssparser::{ParseError, Parser, ParserInput, ToCss, Token, serialize_string};

/// Maximum depth of nested blocks; deeper ones stay unchanged. Each level uses the stack, and input may nest any
/// number.
const DEPTH_MAX: usize = 64;

/// A reference: its position and its text.
struct Found {
    from: usize,
    to: usize,
    reference: String,
    /// Whether the token is a string, as in `@import "a.css"`, and not a whole `url()`.
    is_string: bool,
}

/// Returns the style sheet with each reference replaced by the result of `link`; a reference without a result stays.
/// Returns `None` if nothing changes.
///
/// Also accepts the declarations of a `style` attribute.
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
        // In a page, `</style` would end the style sheet.
        written.push_str(&token.replace('<', "\\3c "));
        done = to;
    }
    if done == 0 {
        return None;
    }
    written.push_str(css.get(done..).unwrap_or_default());
    Some(written)
}

/// `depth` is the number of levels that may still be entered.
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
            // Comments may stand between the keyword and the URL.
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
    // A block that isn't entered is skipped as a whole.
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

/// Collects the references of an `image-set()`, except `type("image/png")`.
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
    fn finds_references_in_every_position() {
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
    fn ignores_what_only_looks_like_a_reference() {
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
    fn unlimited_nesting_does_not_overflow_the_stack() {
        for open in ["(", "{", "[", "a(", "image-set("] {
            let css = format!("{}url(x.png)", open.repeat(200_000));
            assert_eq!(rewritten(&css), css, "{open}");
        }
        let css = format!("{}b:url(x.png){}", "a{".repeat(60), "}".repeat(60));
        assert_eq!(rewritten(&css), css.replace("x.png", "/r/x.png"), "no sheet is nested like that");
    }

    #[test]
    fn everything_else_stays_unchanged() {
        let css = "a { color : red ; }\r\n/* é */\tb{c:url(x.png)}<!-- -->}}\u{1f600} d";
        assert_eq!(rewritten(css), css.replace("x.png", "/r/x.png"));
    }

    #[test]
    fn a_reference_can_not_leave_its_context() {
        let written = rewrite("a{b:url(x)}", |_| Some("a)b'c\"d\\e\n</style>".to_owned())).unwrap();
        assert!(!written.contains("</style"), "{written}");
        let read = rewrite(&written, |reference| {
            assert_eq!(reference, "a)b'c\"d\\e\n</style>");
            None
        });
        assert_eq!(read, None);
    }
}
