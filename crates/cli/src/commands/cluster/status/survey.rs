//! Surveys a cluster from its bucket, and asks the processes of a folder whether they are alive.

use super::super::connector::NetworkConnector;
use super::super::named::{NamedCluster, nodes_of};
use super::super::nodes::{Kind, Node};
use super::super::probe::{self, Readiness};
use super::document::{Document, Process};
use crate::failure::Failure;
use crate::roles;
use meridian_backend::cluster::{Cluster, ClusterSurvey};
use meridian_store::seams::Seams;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Surveys one cluster, any number of times.
pub(super) struct StatusSurvey {
    survey: ClusterSurvey,
    /// The folder of `meridian cluster up`, if it was named.
    folder: Option<PathBuf>,
    _runtime: Runtime,
}

impl StatusSurvey {
    /// Opens the cluster that was named.
    pub(super) fn open(named: NamedCluster) -> Result<StatusSurvey, Failure> {
        let NamedCluster { address, bucket, folder, config, runtime } = named;
        let tls = config.as_ref().map(|config| roles::open(&config.cluster.tls, None)).transpose()?.flatten();
        let tls = tls.map(|certificates| certificates.tls());
        let nats = config.map(|config| config.cluster.nats);
        let connector = NetworkConnector { nats, tls, runtime: runtime.handle().clone() };
        let survey = ClusterSurvey::new(&address, &bucket, &Seams::real(), Arc::new(connector));
        Ok(StatusSurvey { survey, folder, _runtime: runtime })
    }

    /// Surveys the present state.
    pub(super) fn run(&self) -> Result<Document, Failure> {
        let cluster = self.survey.run()?;
        let processes = match &self.folder {
            None => None,
            Some(folder) => {
                let nodes = nodes_of(folder)?.nodes;
                Some(nodes.iter().map(|node| process(node, &cluster)).collect())
            }
        };
        Ok(Document { cluster, processes })
    }
}

fn process(node: &Node, cluster: &Cluster) -> Process {
    let held = cluster.groups().filter_map(|(_, owner)| owner).filter(|owner| owner.address == node.address);
    let holds = held.filter_map(|owner| owner.reachable).max();
    let (answers, ready, reason) = match (node.pid, node.role, holds) {
        (None, _, _) => (Some(false), None, None),
        (Some(_), Kind::Owner, Some(reachable)) => (Some(reachable), None, None),
        (Some(_), Kind::Owner, None) => ((!probe::stands_by(&node.address)).then_some(false), None, None),
        (Some(_), _, _) => match probe::ask(node) {
            Readiness::Ready => (Some(true), Some(true), None),
            Readiness::NotReady(why) => (Some(true), Some(false), Some(why)),
            Readiness::Silent => (Some(false), None, None),
        },
    };
    let (name, address) = (node.name.clone(), node.address.clone());
    Process { name, role: node.role, pid: node.pid, address, answers, ready, reason }
}
