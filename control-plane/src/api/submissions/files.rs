//! Files in submissions written by the owner. As in visitors' submissions, the answer is the id of a file uploaded
//! for that field; the file then belongs to the submission.

use domain::FieldError;
use domain::answers::Answers;
use domain::fields::{Field, FieldType};
use store::Conn;
use store::form_files::{bind, delete_replaced, list_files};
use store::forms::Form;
use store::submissions::Submission;
use store::usage::reserve_bytes;
use uuid::Uuid;
use web::Problem;

use crate::call::Call;

impl<S> Call<S> {
    /// Binds the files named in `answers` to the submission, which may be new. The account's usage counters must be
    /// locked. Rejects ids of other fields or submissions, and files beyond the storage limit.
    pub(super) async fn bind_files(
        &self,
        conn: &mut Conn,
        form: &Form,
        submission: &Submission,
        answers: &Answers,
    ) -> Result<(), Problem> {
        let named = named(form, answers);
        if named.is_empty() {
            return Ok(());
        }
        let bound = list_files(conn, self.account_id, &[submission.id]).await?;
        let (mut bytes, mut errors) = (0, Vec::new());
        for (field, answer) in named {
            let id: Option<Uuid> = answer.parse().ok();
            if bound.iter().any(|file| Some(file.id) == id && file.field == field.name) {
                continue;
            }
            let of = (form.id, submission.id);
            let size = match id {
                Some(id) => {
                    bind(conn, self.account_id, of, (&field.name, id), submission.status.counts()).await?
                }
                None => None,
            };
            match size {
                Some(size) => bytes += size,
                None => errors.push(no_such_file(field)),
            }
        }
        if !errors.is_empty() {
            return Err(Problem::validation(errors));
        }
        let limit = self.limits().storage_bytes;
        if submission.status.counts() && !reserve_bytes(conn, self.account_id, bytes, limit).await? {
            return Err(self.storage_exceeded(bytes));
        }
        Ok(())
    }

    /// Like [`Call::bind_files`], for answers that replace others. An unchanged answer may name a file that is gone;
    /// files no longer named are deleted.
    pub(super) async fn rebind_files(
        &self,
        conn: &mut Conn,
        form: &Form,
        submission: &Submission,
        answers: &Answers,
    ) -> Result<(), Problem> {
        let before = &submission.payload;
        let changed: Answers = answers
            .iter()
            .filter(|(field, answer)| before.get(*field) != Some(*answer))
            .map(|(field, answer)| (field.clone(), answer.clone()))
            .collect();
        self.bind_files(conn, form, submission, &changed).await?;
        let fields: Vec<String> = files_of(form).map(|field| field.name.clone()).collect();
        if fields.is_empty() {
            return Ok(());
        }
        let retained: Vec<Uuid> =
            named(form, answers).into_iter().filter_map(|(_, answer)| answer.parse().ok()).collect();
        delete_replaced(conn, self.account_id, submission.id, &fields, &retained).await?;
        Ok(())
    }
}

fn files_of(form: &Form) -> impl Iterator<Item = &Field> {
    form.fields.iter().filter(|field| field.kind == FieldType::File)
}

/// The file fields with an answer.
fn named<'a>(form: &'a Form, answers: &'a Answers) -> Vec<(&'a Field, &'a str)> {
    files_of(form).filter_map(|field| Some((field, answers.get(&field.name)?.as_str()?))).collect()
}

fn no_such_file(field: &Field) -> FieldError {
    let message = format!(
        "{} takes the objectId of a file that was uploaded for just this field of this form, and is no other \
         submission's",
        field.label
    );
    FieldError::new(format!("payload.{}", field.name), "file", message)
}
