//! The authorization matrix: every endpoint with every kind of caller, for every position of an id.
//!
//! `matrix.txt` beside this folder shows the results. Rows are in `cases`, columns in `credentials`, the expected
//! results in `rules`.

mod case;
mod cases;
mod credentials;
mod resources;
mod rules;
mod table;

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use sandbox::test::TestStore as _;
use serde_json::{Value, json};
use web::{Endpoint, endpoints_of};

use self::case::{CallSubject, Case};
use self::credentials::{Column, Credentials};
use self::resources::Account;
use self::rules::{ITEM_REJECTED, ResponseSummary, expected, shows};
use crate::harness::Api;
use crate::no_side_effects::Snapshot;

#[tokio::test]
async fn every_response_follows_the_authorization_rules() {
    let warehouse = sandbox::test::clickhouse().await;
    let settings = warehouse.settings();
    let limits = ["trial.max_per_hour=100000", "trial.max_per_day=100000"];
    let api = Api::start(&settings.iter().map(String::as_str).chain(limits).collect::<Vec<_>>()).await;
    let endpoints = routed_endpoints();
    let cases = cases::all();
    let mut matrix = Matrix { api: &api, wrong: Vec::new(), responses: BTreeMap::new() };

    let callers = Credentials::create(&api).await;
    let other = Account::create(&api).await;
    for (at, case) in cases.iter().enumerate() {
        let endpoint = endpoint_of(&endpoints, case);
        let before = Snapshot::take(&api).await;
        for column in Column::all() {
            if expected(endpoint, case, column).is_some_and(|response| response.is_rejection()) {
                matrix.fill(at, case, endpoint, column, &callers, &other).await;
            }
        }
        if let Err(changed) = before.check().await {
            matrix.wrong.push(format!(
                "{} {}: a rejected call had side effects: {changed}",
                case.operation, case.position
            ));
        }
    }
    let mut callers = callers;
    for (at, case) in cases.iter().enumerate() {
        let endpoint = endpoint_of(&endpoints, case);
        for column in Column::all() {
            if expected(endpoint, case, column).is_some_and(|response| !response.is_rejection()) {
                matrix.fill(at, case, endpoint, column, &callers, &other).await;
                if case.consumes {
                    callers = Credentials::create(&api).await;
                }
            }
        }
    }
    assert!(matrix.wrong.is_empty(), "{} cells are wrong:\n{}", matrix.wrong.len(), matrix.wrong.join("\n"));
    table::compare(&cases, &matrix.responses);
}

#[test]
fn rows_and_endpoints_match() {
    let cases = cases::all();
    let endpoints = routed_endpoints();
    let missing: Vec<&str> = endpoints
        .iter()
        .map(|endpoint| endpoint.operation_id.as_str())
        .filter(|operation| !cases.iter().any(|case| case.operation == *operation))
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "matrix/cases.rs lacks these endpoints");
    for case in &cases {
        endpoint_of(&endpoints, case);
    }
    assert_eq!(rules::exceptions_without_case(&cases), Vec::<String>::new());
}

/// The endpoints that the registry routes; tests of the others are beside their routers.
fn routed_endpoints() -> Vec<Endpoint> {
    let endpoints = endpoints_of(&control_plane::api::document());
    endpoints.into_iter().filter(|endpoint| endpoint.served_by.is_none()).collect()
}

fn endpoint_of<'a>(endpoints: &'a [Endpoint], case: &Case) -> &'a Endpoint {
    let found = endpoints.iter().find(|endpoint| endpoint.operation_id == case.operation);
    found.unwrap_or_else(|| panic!("no operation {}", case.operation))
}

struct Matrix<'a> {
    api: &'a Api,
    wrong: Vec<String>,
    /// Responses by row and column.
    responses: BTreeMap<(usize, String), ResponseSummary>,
}

impl Matrix<'_> {
    /// Sends one call and records its response and its violations.
    async fn fill(
        &mut self,
        at: usize,
        case: &Case,
        endpoint: &Endpoint,
        column: Column,
        callers: &Credentials,
        other: &Account,
    ) {
        let kind = kind_of(case.subject);
        let headers = callers.headers(other, column, kind);
        let account = &callers.account;
        let (own, named) = match column {
            Column::OtherAccount => (&other.inside, &account.inside),
            Column::FolderOutside => (&account.inside, &account.outside),
            _ => (&account.inside, &account.inside),
        };
        let own = callers.own(*own, column, kind);
        let request = (case.build_request)(&own, named);
        let id = request.id.map(|id| id.to_string()).unwrap_or_default();
        let inner = request.inner.map(|id| id.to_string()).unwrap_or_default();
        let path = endpoint.path.replace("{id}", &id).replace("{entryId}", &inner);
        let names = ["{subId}", "{deliveryId}", "{runId}", "{versionId}"];
        let path = names.iter().fold(path, |path, name| path.replace(name, &inner)) + request.query.as_str();
        let method: Method = endpoint.method.parse().unwrap();
        let (status, body) = self.api.send_with(method, &path, &headers, &request.body).await;
        let response = read(status, &body);
        let expected_response = expected(endpoint, case, column);
        let mut report_violation = |what: &str| {
            let name = format!("{} {} {:?} by {column:?}", case.operation, case.position, case.subject);
            self.wrong.push(format!("{name}: {what}\n    {path} {} -> {status} {body}", request.body));
        };
        if expected_response.as_ref() != Some(&response) {
            report_violation(&format!(
                "{response}, not {}",
                expected_response.map(|expected_response| expected_response.to_string()).unwrap_or_default()
            ));
        }
        // A key has no sessions, whatever its scopes.
        let is_missing = response.code.as_deref() == Some("not_found");
        if let (Column::OneScope(key_scope), true) = (column, response.is_rejection() && !is_missing) {
            let (request, own) = (&body["requiredScope"], json!(endpoint.scopes.as_ref().unwrap()[0]));
            // The body requires an additional scope.
            let has_endpoint_scope = json!(key_scope.to_string()) == own;
            if has_endpoint_scope == (*request == own) || !request.is_string() {
                report_violation("the problem does not name the required scope");
            }
        }
        // The response to another site's page contains nothing of the account.
        let is_known = status != StatusCode::UNAUTHORIZED && body["code"] != "foreign_origin";
        // A file has no `_meta`.
        let is_file = case.operation.ends_with(".export") && !response.is_rejection();
        if is_known && !is_file && endpoint.scopes.is_some() && body["_meta"]["plan"] != "scale" {
            report_violation("an authenticated response carries _meta");
        }
        if let (CallSubject::Lists(kind), 200) = (case.subject, response.status) {
            let text = body.to_string();
            let shown =
                [account.inside, account.outside].map(|side| text.contains(&side.of(kind).to_string()));
            if (shown[0], shown[1]) != shows(kind, column) {
                report_violation(&format!("lists {shown:?} of the resources inside and outside"));
            }
        }
        self.responses.insert((at, table::column_of(endpoint, column)), response);
    }
}

fn read(status: StatusCode, body: &Value) -> ResponseSummary {
    let item = (body["results"][0]["status"] == "error").then(|| ITEM_REJECTED.to_owned());
    ResponseSummary { status: status.as_u16(), code: body["code"].as_str().map(str::to_owned).or(item) }
}

/// The kind of the ids to which the calling key is restricted.
fn kind_of(subject: CallSubject) -> domain::scopes::Resource {
    match subject {
        CallSubject::Names(kind)
        | CallSubject::NamesAmongOthers(kind)
        | CallSubject::First(kind)
        | CallSubject::Creates(kind)
        | CallSubject::Lists(kind) => kind,
        CallSubject::Nothing | CallSubject::Account => domain::scopes::Resource::Pages,
    }
}
