//! What stops or misleads a Java controller (protocol reference, section 10): Quorate never sends it, and a fake peer that
//! sends it to Quorate gets an error, a closed connection or a line of the log. No state is taken over, nobody loops,
//! and whoever is not asked goes on.

#[path = "hazards/fake.rs"]
mod fake;
#[path = "hazards/fetch_answers.rs"]
mod fetch_answers;
#[path = "hazards/java_habits.rs"]
mod java_habits;
#[path = "hazards/loops.rs"]
mod loops;
#[path = "hazards/mutations.rs"]
mod mutations;
#[path = "hazards/never_sent.rs"]
mod never_sent;
#[path = "hazards/nodes.rs"]
mod nodes;
#[path = "hazards/other_answers.rs"]
mod other_answers;
#[path = "hazards/requests.rs"]
mod requests;
#[path = "hazards/tables.rs"]
mod tables;
