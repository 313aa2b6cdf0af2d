//! The catalogue of workflows.

use super::{Category, Question, Workflow};
use crate::fields::FieldType;

/// Maximum size of a file in a workflow's form.
const FILE_BYTES: u64 = 10 << 20;

const fn may(name: &'static str, label: &'static str, kind: FieldType) -> Question {
    Question { name, label, kind, required: false, options: &[], between: None, accept: None }
}

const fn must(name: &'static str, label: &'static str, kind: FieldType) -> Question {
    Question { required: true, ..may(name, label, kind) }
}

const fn may_choose(name: &'static str, label: &'static str, options: &'static [&'static str]) -> Question {
    Question { options, ..may(name, label, FieldType::Select) }
}

const fn must_choose(name: &'static str, label: &'static str, options: &'static [&'static str]) -> Question {
    Question { required: true, ..may_choose(name, label, options) }
}

const fn number(question: Question, min: f64, max: f64) -> Question {
    Question { between: Some((min, max)), ..question }
}

const fn file(name: &'static str, label: &'static str, accept: &'static str) -> Question {
    Question { accept: Some((accept, FILE_BYTES)), ..may(name, label, FieldType::File) }
}

const NAME: Question = must("name", "Name", FieldType::Text);
const EMAIL: Question = must("email", "E-mail", FieldType::Email);
const NAME_IF_GIVEN: Question = may("name", "Name", FieldType::Text);
const EMAIL_IF_GIVEN: Question = may("email", "E-mail", FieldType::Email);
const ANSWERS: &[&str] = &["A", "B", "C", "D"];

/// Every workflow, in the specification's order.
pub static ALL: [Workflow; 14] = [
    Workflow {
        id: "contact",
        name: "Contact",
        description: "Lets visitors write to you.",
        category: Category::LeadGen,
        questions: &[NAME, EMAIL, must("message", "Message", FieldType::Textarea)],
    },
    Workflow {
        id: "feedback",
        name: "Feedback",
        description: "Collects opinions and ideas, with a rating from 1 to 5.",
        category: Category::Feedback,
        questions: &[
            EMAIL_IF_GIVEN,
            must_choose(
                "category",
                "What is it about?",
                &["Bug Report", "Feature Request", "Improvement", "Other"],
            ),
            must_choose("rating", "Rating", &["1", "2", "3", "4", "5"]),
            must("feedback", "Feedback", FieldType::Textarea),
        ],
    },
    Workflow {
        id: "bug-report",
        name: "Bug report",
        description: "Takes reports of faults with the steps that lead to them.",
        category: Category::Support,
        questions: &[
            EMAIL,
            must_choose("severity", "Severity", &["Critical", "High", "Medium", "Low"]),
            must("title", "Title", FieldType::Text),
            must("steps", "Steps to see it", FieldType::Textarea),
            must("expected", "What should happen", FieldType::Textarea),
            must("actual", "What happens", FieldType::Textarea),
        ],
    },
    Workflow {
        id: "waitlist",
        name: "Waitlist",
        description: "Gathers the people who want to be told when it starts.",
        category: Category::Signup,
        questions: &[
            EMAIL,
            NAME_IF_GIVEN,
            may_choose(
                "referral",
                "How did you hear of us?",
                &["Twitter/X", "LinkedIn", "Friend", "Search", "Other"],
            ),
        ],
    },
    Workflow {
        id: "survey",
        name: "Survey",
        description: "Asks how satisfied people are and what should become better.",
        category: Category::Feedback,
        questions: &[
            EMAIL_IF_GIVEN,
            must_choose(
                "satisfaction",
                "How satisfied are you?",
                &["Very Satisfied", "Satisfied", "Neutral", "Dissatisfied", "Very Dissatisfied"],
            ),
            must_choose(
                "recommend",
                "Would you recommend us?",
                &["Definitely", "Probably", "Not sure", "Probably not", "Definitely not"],
            ),
            may("improve", "What should we improve?", FieldType::Textarea),
        ],
    },
    Workflow {
        id: "poll",
        name: "Poll",
        description: "Asks one question with four options.",
        category: Category::Feedback,
        questions: &[must_choose("vote", "Your vote", &["Option A", "Option B", "Option C", "Option D"])],
    },
    Workflow {
        id: "rsvp",
        name: "RSVP",
        description: "Finds out who comes, with how many, and what they eat.",
        category: Category::Signup,
        questions: &[
            NAME,
            EMAIL,
            must_choose("attendance", "Will you come?", &["Yes", "No", "Maybe"]),
            number(may("plus_ones", "How many do you bring?", FieldType::Number), 0.0, 5.0),
            may_choose(
                "dietary",
                "What do you eat?",
                &["None", "Vegetarian", "Vegan", "Gluten-free", "Other"],
            ),
        ],
    },
    Workflow {
        id: "nps",
        name: "Net promoter score",
        description: "Asks how likely people are to recommend you, from 0 to 10.",
        category: Category::Feedback,
        questions: &[
            must_choose(
                "score",
                "How likely are you to recommend us?",
                &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"],
            ),
            may("reason", "Why?", FieldType::Textarea),
            EMAIL_IF_GIVEN,
        ],
    },
    Workflow {
        id: "quiz",
        name: "Quiz",
        description: "Asks three questions with four answers each.",
        category: Category::Feedback,
        questions: &[
            NAME,
            must_choose("q1", "Question 1", ANSWERS),
            must_choose("q2", "Question 2", ANSWERS),
            must_choose("q3", "Question 3", ANSWERS),
        ],
    },
    Workflow {
        id: "newsletter",
        name: "Newsletter",
        description: "Gathers subscribers and what they want to read about.",
        category: Category::Signup,
        questions: &[
            EMAIL,
            NAME_IF_GIVEN,
            may_choose(
                "interests",
                "What interests you?",
                &["Product Updates", "Engineering", "Design", "Industry News", "All Topics"],
            ),
        ],
    },
    Workflow {
        id: "booking",
        name: "Booking",
        description: "Takes bookings for a day and a time of day.",
        category: Category::LeadGen,
        questions: &[
            NAME,
            EMAIL,
            must("date", "Day", FieldType::Date),
            must_choose("time_slot", "Time of day", &["Morning", "Afternoon", "Evening"]),
            must_choose("service", "Service", &["Consultation", "Class", "Session", "Other"]),
            may("notes", "Notes", FieldType::Textarea),
        ],
    },
    Workflow {
        id: "client-intake",
        name: "Client intake",
        description: "Learns what a new client needs, by when and for how much.",
        category: Category::LeadGen,
        questions: &[
            NAME,
            EMAIL,
            may("phone", "Phone", FieldType::Tel),
            must_choose(
                "service_needed",
                "What do you need?",
                &["Photography", "Design", "Consulting", "Development", "Other"],
            ),
            must_choose("budget", "Budget", &["$0-$1K", "$1K-$5K", "$5K-$10K", "$10K+"]),
            must_choose("timeline", "By when?", &["ASAP", "1-2 weeks", "1 month", "Flexible"]),
            must("details", "Details", FieldType::Textarea),
            file("attachment", "Attachment", ".pdf,.doc,.docx,.png,.jpg"),
        ],
    },
    Workflow {
        id: "order",
        name: "Order",
        description: "Takes orders with size, quantity and a picture if there is one.",
        category: Category::LeadGen,
        questions: &[
            NAME,
            EMAIL,
            must_choose("item", "Item", &["Item A", "Item B", "Item C", "Custom"]),
            number(must("quantity", "Quantity", FieldType::Number), 1.0, 10.0),
            must_choose("size", "Size", &["Small", "Medium", "Large"]),
            may("special_requests", "Special requests", FieldType::Textarea),
            file("reference_image", "Reference image", "image/*"),
        ],
    },
    Workflow {
        id: "preorder",
        name: "Preorder",
        description: "Takes orders for what is yet to come.",
        category: Category::LeadGen,
        questions: &[
            NAME,
            EMAIL,
            must_choose("product", "Product", &["Product A", "Product B", "Product C"]),
            number(must("quantity", "Quantity", FieldType::Number), 1.0, 5.0),
            must("shipping_address", "Shipping address", FieldType::Textarea),
        ],
    },
];
