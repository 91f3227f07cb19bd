//! Ask: queries a provider. Each page of its response is processed while the next is fetched.

use super::{Pipeline, Stage, Work};
use crate::provider::Sink;
use std::sync::{Arc, Weak};

/// The stage.
pub struct AskStage {
    /// The pipeline that responses enter. Weak, because this stage is part of it.
    pub pipeline: Weak<Pipeline>,
}

impl Stage for AskStage {
    type Body = ();
    const NAME: &'static str = "ask";

    async fn run(self: Arc<Self>, work: Work<()>) {
        // The pipeline is gone, so the server is stopping; the dropped leg reports itself.
        let Some(pipeline) = self.pipeline.upgrade() else { return };
        let provider = work.leg.provider.clone();
        let outcome = provider.ask(Sink::new(pipeline, work.leg.clone())).await;
        work.leg.end(outcome);
    }
}
