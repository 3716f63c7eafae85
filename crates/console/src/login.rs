//! The sign-in page: the login link first, a pasted key second.

use maud::html;

use crate::chrome::{Chrome, Section, page};
use crate::links;

/// `error` is shown unchanged, so it must be safe for anonymous users.
pub fn login_page(chrome: &Chrome, error: Option<&str>) -> String {
    let body = html! {
        div.narrow {
            h1 { "Sign in" }
            @if let Some(error) = error {
                div.notice.bad role="alert" #login-error { p { (error) } }
            }
            section.panel.pad {
                h2 { "With the printed link" }
                p {
                    "Both " code { "tandem dev" } " and " code { "tandem serve" }
                    " print a sign-in link when they start. Open it in this browser and you are in."
                }
                p.hint { "The link is printed near the top of the terminal where the host was started." }
            }
            section.panel.pad {
                h2 { "With an API key" }
                form.stack method="post" action=(links::LOGIN) {
                    label for="key" { "API key" }
                    input #key type="password" name="key" required autocomplete="current-password"
                        autocapitalize="none" spellcheck="false"
                        aria-describedby=[error.map(|_| "login-error")];
                    p.hint { "The console sees what the key may see. The key is exchanged for a session and not kept in the page." }
                    div { button.primary type="submit" { "Sign in" } }
                }
            }
        }
    };
    page(chrome, Section::None, "Sign in", &body)
}
