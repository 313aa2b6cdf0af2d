//! What follows from effects of automations. The effects themselves are tested beside their code.

mod messages;
