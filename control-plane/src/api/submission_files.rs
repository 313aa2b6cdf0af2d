//! Files in answers that a form's owner writes: they answer with ids of files that were uploaded for just that field, as
//! visitors do, and these belong to the submission from then on.

use domain::Complaint;
use domain::answers::Answers;
use domain::fields::{Field, FieldType};
use store::Conn;
use store::form_files::{bind, delete_replaced, list_files};
use store::forms::Form;
use store::submissions::Submission;
use store::usage::take_bytes;
use uuid::Uuid;
use web::Problem;

use crate::call::Call;

impl<S> Call<S> {
    /// Makes the files that `answers` name the submission's, which may be new. The account's counters must be taken.
    ///
    /// # Errors
    /// One is no file of that field of the form, or another submission's; or the account has no room for them.
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
        let (mut bytes, mut wrong) = (0, Vec::new());
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
                None => wrong.push(no_such_file(field)),
            }
        }
        if !wrong.is_empty() {
            return Err(Problem::validation(wrong));
        }
        let limit = self.limits().storage_bytes;
        if submission.status.counts() && !take_bytes(conn, self.account_id, bytes, limit).await? {
            return Err(self.quota_exceeded("bytes of storage", limit));
        }
        Ok(())
    }

    /// As [`Call::bind_files`], where answers take the place of others. What stays as it was may name a file that is gone;
    /// a file that is named no more goes.
    ///
    /// # Errors
    /// As there.
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
        let kept: Vec<Uuid> =
            named(form, answers).into_iter().filter_map(|(_, answer)| answer.parse().ok()).collect();
        delete_replaced(conn, self.account_id, submission.id, &fields, &kept).await?;
        Ok(())
    }
}

fn files_of(form: &Form) -> impl Iterator<Item = &Field> {
    form.fields.iter().filter(|field| field.kind == FieldType::File)
}

/// The fields that files answer, each with its answer.
fn named<'a>(form: &'a Form, answers: &'a Answers) -> Vec<(&'a Field, &'a str)> {
    files_of(form).filter_map(|field| Some((field, answers.get(&field.name)?.as_str()?))).collect()
}

fn no_such_file(field: &Field) -> Complaint {
    let message = format!(
        "{} takes the objectId of a file that was uploaded for just this field of this form, and is no other \
         submission's",
        field.label
    );
    Complaint::new(format!("payload.{}", field.name), "file", message)
}
