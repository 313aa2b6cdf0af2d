//! `create_submission`: a submission under the form's rules, with all effects of a visitor's submission. Spam checks
//! are skipped, because the owner's automation is trusted.

use automation::execution::Failure;
use domain::answers::{self, Answers};
use domain::fields::{Field, FieldType};
use domain::forms::ClosedReason;
use domain::scopes::{Action, Resource, Scope};
use domain::{FieldError, depth};
use serde_json::{Map, Value, json};
use store::submissions::{NewSubmission, SubmissionOutcome, WriteContext, insert_submission};
use uuid::Uuid;

use super::abort::Abort;
use super::abort::invalid;
use super::authority::missing;
use super::transaction::Transaction;

/// Inserts the submission.
pub(super) async fn create(
    transaction: &mut Transaction<'_>,
    form_id: Uuid,
    payload: &Map<String, Value>,
) -> Result<Value, Abort> {
    let (context, now) = (transaction.context, transaction.now);
    let depth = depth::of_deliveries(context.depth);
    if depth::is_loop(depth) {
        let message = "this run comes from a chain of automations and webhooks that calls itself; the form was not submitted";
        return Err(Failure::permanent(message).into());
    }
    let scope = Scope::new(Resource::Submissions, Action::Create);
    transaction.check(scope, Resource::Forms, form_id).await?;
    let form = store::forms::find_form(&mut transaction.tx, context.account_id, form_id).await?;
    let form = form.ok_or_else(|| missing(Resource::Forms, form_id))?;
    let payload = check(&form.fields, payload).await?;
    let new = NewSubmission {
        id: context.state.rng.uuid_v7(now),
        external_id: None,
        payload,
        extra: Answers::new(),
        spam_reasons: vec![],
    };
    let new_id = || context.state.rng.uuid_v7(now);
    let writer = WriteContext { now, traceparent: context.traceparent.as_deref(), depth, new_id: &new_id };
    let limit = context.plan.limits().submissions_per_form;
    let outcome =
        insert_submission(&mut transaction.tx, context.account_id, &form, &new, limit, &writer).await?;
    match outcome {
        SubmissionOutcome::Stored(signals) => {
            transaction.signals.extend(signals);
            Ok(json!({"submissionId": new.id, "createdAt": now}))
        }
        SubmissionOutcome::Refused(ClosedReason::Closed) => {
            Err(Failure::permanent(format!("the form {} is closed", form.name)).into())
        }
        SubmissionOutcome::Refused(ClosedReason::Full) => {
            Err(Failure::permanent(format!("the form {} takes no more submissions", form.name)).into())
        }
        SubmissionOutcome::Duplicate => Err(duplicate(form.unique_by.as_deref().unwrap_or_default()).into()),
        SubmissionOutcome::NoForm => Err(missing(Resource::Forms, form_id).into()),
        SubmissionOutcome::Changed | SubmissionOutcome::Busy | SubmissionOutcome::RateLimited => {
            Err(Abort::Busy("the form was being edited until the time limit of the step; run it again later"))
        }
    }
}

fn duplicate(unique_by: &[String]) -> Failure {
    let fields = unique_by.join(" and ");
    Failure::permanent(format!("the form already has a submission with the same {fields}"))
}

/// Returns the answers to store.
async fn check(fields: &[Field], given: &Answers) -> Result<Answers, Failure> {
    let files: Vec<FieldError> = fields.iter().filter_map(|field| file_error(field, given)).collect();
    if !files.is_empty() {
        return Err(invalid(&files));
    }
    if !answers::is_slow(fields, given) {
        return answers::check(fields, given).map_err(|errors| invalid(&errors));
    }
    let (fields, given) = (fields.to_vec(), given.clone());
    let checking = tokio::task::spawn_blocking(move || answers::check(&fields, &given));
    let checked = checking.await.map_err(|error| {
        tracing::error!(%error, "the answers of a step can't be checked");
        Failure::transient("the answers could not be checked; this is our fault")
    })?;
    checked.map_err(|errors| invalid(&errors))
}

/// A file belongs to the submission that it was uploaded for.
fn file_error(field: &Field, given: &Answers) -> Option<FieldError> {
    let is_answered = given.get(&field.name).is_some_and(|answer| !answer.is_null() && answer != "");
    let message = || format!("{}: an automation can't submit files; leave the field out", field.name);
    (field.kind == FieldType::File && is_answered).then(|| FieldError::new(&field.name, "file", message()))
}
