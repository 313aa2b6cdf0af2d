//! The endpoints of the API that this router does not route: the edge and the collector serve those of visitors, and
//! other routers of this service those of browsers and of agents. They are a part of the API document all the same.

mod answers;
mod inputs;

use uuid::Uuid;
use web::{Elsewhere, IdempotencyKey, Json, Path, Problem, Query, Resource};

use self::answers::{
    AcceptedOr, CreatedBody, FormResults, FormUploadResponse, Found, McpResponse, Nothing, SeeOther,
    SubmissionReceiptResponse,
};
use self::inputs::{
    AnyKey, EventRequest, FormUploadRequest, McpRequest, OptionalKey, SignInQuery, SubmissionBody,
};
use crate::App;

const EDGE: &str = "edge-server";
const COLLECTOR: &str = "collector";
const CONTROL_PLANE: &str = "control-plane";

pub(super) fn resources() -> Vec<Resource<App>> {
    vec![auth(), submissions(), analytics(), mcp()]
}

fn auth() -> Resource<App> {
    let redirect = |path, name, summary| Elsewhere {
        served_by: CONTROL_PLANE,
        method: "get",
        path,
        name,
        summary,
        description: "For people in a browser; a program uses an API key. The response redirects to the provider, \
            which returns the browser to `/api/auth/oauth/{provider}/callback`, signed in by a cookie.",
    };
    Resource::new("auth")
        .elsewhere::<Query<SignInQuery>, Result<SeeOther, Problem>>(redirect(
            "/api/auth/oauth/google",
            "google",
            "Sign in with Google",
        ))
        .elsewhere::<Query<SignInQuery>, Result<SeeOther, Problem>>(redirect(
            "/api/auth/oauth/github",
            "github",
            "Sign in with GitHub",
        ))
}

fn submissions() -> Resource<App> {
    Resource::new("submissions")
        .elsewhere::<(Path<Uuid>, SubmissionBody, IdempotencyKey), Result<CreatedBody<SubmissionReceiptResponse>, Problem>>(
            Elsewhere {
                served_by: EDGE,
                method: "post",
                path: "/api/forms/{id}/submit",
                name: "submit",
                summary: "Submit answers to a form",
                description: "Answers by field name, at most 256 KiB without files. A form that a browser posts, with \
                    `text/html` in `Accept`, is answered by a page or by a redirect (303) instead of JSON. Pages of any \
                    origin may call this.",
            },
        )
        .elsewhere::<(Path<Uuid>, Json<FormUploadRequest>), Result<CreatedBody<FormUploadResponse>, Problem>>(
            Elsewhere {
                served_by: EDGE,
                method: "post",
                path: "/api/forms/{id}/upload",
                name: "upload",
                summary: "Get a signed URL to upload a file of a form to",
                description: "PUT the bytes to `uploadUrl` with `uploadHeaders`, then submit `objectId` as the answer to \
                    the field. Files that are not submitted are deleted.",
            },
        )
        .elsewhere::<(Path<Uuid>, OptionalKey), Result<FormResults, Problem>>(Elsewhere {
            served_by: EDGE,
            method: "get",
            path: "/api/forms/{id}/results",
            name: "public_results",
            summary: "Get a form's public results",
            description: "Counts of choices and means of numbers, for everyone if the form has `publicResults`. With a \
                key of the form's account the answer is that of `GET /api/forms/{id}/submissions/results`.",
        })
        .elsewhere::<Path<(Uuid, Uuid)>, Result<Found, Problem>>(Elsewhere {
            served_by: EDGE,
            method: "get",
            path: "/api/forms/{id}/files/{oid}",
            name: "file",
            summary: "Download a submitted file",
            description: "Redirects to a signed URL that is valid for a short time. The file's id is the secret: no key is \
                needed.",
        })
}

fn analytics() -> Resource<App> {
    Resource::new("analytics").elsewhere::<Json<EventRequest>, Nothing>(Elsewhere {
        served_by: COLLECTOR,
        method: "post",
        path: "/api/collect",
        name: "collect",
        summary: "Record a visitor's event",
        description: "What the tracker sends. The answer is the same whether the event is counted or dropped, as those \
            of bots and unknown sites are. The body is at most 8 KiB; its content type does not matter.",
    })
}

fn mcp() -> Resource<App> {
    Resource::new("mcp").elsewhere::<(AnyKey, Json<McpRequest>), Result<AcceptedOr<McpResponse>, Problem>>(
        Elsewhere {
            served_by: CONTROL_PLANE,
            method: "post",
            path: "/api/mcp",
            name: "send",
            summary: "Use the API as an MCP server",
            description: "Streamable HTTP without sessions, answered in JSON: give this URL and an API key to an MCP \
                client. Messages are at most 4 MiB; larger batches of pages go to the endpoints of this document.",
        },
    )
}
