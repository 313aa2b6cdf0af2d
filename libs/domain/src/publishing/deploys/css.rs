//! Rewrites references in style sheets. A tokenizer finds them; all other bytes stay unchanged.

use cssparser::{ParseError, Parser, ParserInput, ToCss, Token, serialize_string};

/// Maximum depth of nested blocks; deeper ones stay unchanged. Each level uses the stack, and input may nest any
/// number.
const DEPTH_MAX: usize = 64;

/// The rewritten style sheet would exceed its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its references written out exceed the limit of its size")]
pub struct TooLarge;

/// Returns the style sheet with each reference replaced by the result of `link`; a reference without a result stays.
/// Returns `None` if nothing changes, and an error instead of a result of more than `max_bytes`.
///
/// Also accepts the declarations of a `style` attribute.
pub fn rewrite(
    css: &str,
    max_bytes: usize,
    link: impl FnMut(&str) -> Option<String>,
) -> Result<Option<String>, TooLarge> {
    let mut input = ParserInput::new(css);
    let mut parser = Parser::new(&mut input);
    let mut sink = Sink { css, max_bytes, link, written: String::new(), done: 0, is_full: false };
    collect(&mut parser, &mut sink, DEPTH_MAX);
    sink.finish()
}

/// Writes the style sheet up to each replaced reference. Stops at the limit, because each reference can become hundreds
/// of times as long.
struct Sink<'a, L> {
    css: &'a str,
    max_bytes: usize,
    link: L,
    written: String,
    /// How much of the style sheet is written.
    done: usize,
    is_full: bool,
}

impl<L: FnMut(&str) -> Option<String>> Sink<'_, L> {
    /// Replaces the token at `from..to`. `is_string` distinguishes a string, as in `@import "a.css"`, from a whole
    /// `url()`.
    fn replace(&mut self, from: usize, to: usize, reference: &str, is_string: bool) {
        let Some(linked) = (self.link)(reference).filter(|linked| linked != reference) else { return };
        let mut token = String::new();
        let serialized = if is_string {
            serialize_string(&linked, &mut token)
        } else {
            Token::UnquotedUrl(linked.as_str().into()).to_css(&mut token)
        };
        let (Ok(()), Some(before)) = (serialized, self.css.get(self.done..from)) else { return };
        // In a page, `</style` would end the style sheet.
        let token = token.replace('<', "\\3c ");
        if self.written.len() + before.len() + token.len() > self.max_bytes {
            self.is_full = true;
            return;
        }
        self.written.push_str(before);
        self.written.push_str(&token);
        self.done = to;
    }

    fn finish(mut self) -> Result<Option<String>, TooLarge> {
        let rest = self.css.get(self.done..).unwrap_or_default();
        if self.is_full || (self.done > 0 && self.written.len() + rest.len() > self.max_bytes) {
            return Err(TooLarge);
        }
        if self.done == 0 {
            return Ok(None);
        }
        self.written.push_str(rest);
        Ok(Some(self.written))
    }
}

/// `depth` is the number of levels that may still be entered.
fn collect<L: FnMut(&str) -> Option<String>>(
    parser: &mut Parser<'_, '_>,
    sink: &mut Sink<'_, L>,
    depth: usize,
) {
    let mut is_import = false;
    while !sink.is_full {
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
                nested(parser, sink, are_images, depth);
                continue;
            }
            Token::ParenthesisBlock | Token::SquareBracketBlock | Token::CurlyBracketBlock => {
                nested(parser, sink, false, depth);
                continue;
            }
            _ => continue,
        };
        sink.replace(from, parser.position().byte_index(), &reference, is_string);
    }
}

fn nested<L: FnMut(&str) -> Option<String>>(
    parser: &mut Parser<'_, '_>,
    sink: &mut Sink<'_, L>,
    are_images: bool,
    depth: usize,
) {
    // A block that isn't entered is skipped as a whole.
    let Some(depth) = depth.checked_sub(1) else { return };
    let _ended: Result<(), ParseError<'_, ()>> = parser.parse_nested_block(|inside| {
        if are_images {
            images(inside, sink);
        } else {
            collect(inside, sink, depth);
        }
        Ok(())
    });
}

/// Replaces the references of an `image-set()`, except `type("image/png")`.
fn images<L: FnMut(&str) -> Option<String>>(parser: &mut Parser<'_, '_>, sink: &mut Sink<'_, L>) {
    while !sink.is_full {
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
        sink.replace(from, parser.position().byte_index(), &reference, is_string);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(css: &str) -> String {
        let link = |reference: &str| (!reference.starts_with("data:")).then(|| format!("/r/{reference}"));
        rewrite(css, usize::MAX, link).unwrap().unwrap_or_else(|| css.to_owned())
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
        let to = "a)b'c\"d\\e\n</style>";
        let written = rewrite("a{b:url(x)}", usize::MAX, |_| Some(to.to_owned())).unwrap().unwrap();
        assert!(!written.contains("</style"), "{written}");
        let read = rewrite(&written, usize::MAX, |reference| {
            assert_eq!(reference, to);
            None
        });
        assert_eq!(read, Ok(None));
    }

    #[test]
    fn rewriting_stops_at_the_limit() {
        let css = "a{b:".to_owned() + &"url(x)".repeat(100_000);
        let mut links = 0;
        let written = rewrite(&css, 1 << 20, |_| {
            links += 1;
            Some("a".repeat(1_000))
        });
        assert_eq!((written, links < 1_100), (Err(TooLarge), true), "{links} references were written out");
        assert_eq!(rewrite("a{b:url(x)}", 10, |_| None), Ok(None), "an unchanged one is not written");
        assert_eq!(rewrite("a{b:url(x)}", 12, |_| Some("xy".into())), Ok(Some("a{b:url(xy)}".into())));
        assert_eq!(rewrite("a{b:url(x)}", 11, |_| Some("xy".into())), Err(TooLarge));
    }
}
