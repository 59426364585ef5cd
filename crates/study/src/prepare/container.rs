//! Looks at the images of contenders that are containers, before anything starts.
//!
//! Owns: what the engine is asked. Must not know: how containers are run.

use std::collections::BTreeMap;

use deadheat_host::affinity::cpu_list;
use deadheat_host::cgroup::Hierarchy;
use deadheat_host::process::container::{
    AskError, Engine, Place, ask, container_of, image_at, place, processors,
};
use deadheat_host::process::run::RunId;
use deadheat_record::{Container, Contender, Limits, Plan};

use super::PrepareError;
use super::version::Changed;

/// Adds image, engine and runtime to the contenders that are containers. The image's size is what is deployed, unless the study names something else.
///
/// # Errors
/// The engine does not answer, the image is not there, or the command cannot be raced.
pub(super) fn all(plan: &mut Plan, unbuilt: &[String]) -> Result<(), PrepareError> {
    let limits: Vec<Limits> = plan.scenarios.iter().map(|one| one.limits.clone()).collect();
    let pins = !plan.pinning.server_cpus.is_empty() || limits.iter().any(|one| !one.cpuset.is_empty());
    let load_cpus = plan.load_cpus_here().to_vec();
    for planned in plan.contenders.iter_mut().filter(|one| !unbuilt.contains(&one.name)) {
        let Some((engine, rest)) = container_of(&planned.command) else { continue };
        let failed = |ended: String, remedy: String| PrepareError::Failed {
            what: format!("the container of {}", planned.name),
            command: planned.command.clone(),
            ended,
            tail: String::new(),
            remedy,
        };
        let unanswered = |error: &AskError| {
            failed(
                format!("cannot be run: {error}"),
                format!("see whether `{engine} ps` works; --only with the others' names races without it"),
            )
        };
        let version = ask(engine, &["version", "--format", "{{.Client.Version}}"])
            .map_err(|error| unanswered(&error))?;
        let groups = Hierarchy::detect().kind(&RunId::current().next_group());
        let place =
            place(engine, groups, &[]).map_err(|problem| failed("cannot be raced".into(), problem))?;
        // Docker only warns if it has no cpuset, and starts the container on all processors.
        let asked =
            (engine == Engine::Docker && pins).then(|| ask(engine, &["info", "--format", "{{.CPUSet}}"]));
        let has_cpuset =
            asked.transpose().map_err(|error| unanswered(&error))?.is_none_or(|has| has.trim() == "true");
        if let Some((problem, remedy)) = lacking(place, &limits, has_cpuset) {
            return Err(failed(problem.into(), remedy.into()));
        }
        let words = words_of(rest);
        let at = image_at(&words).map_err(|problem| failed("cannot be raced".into(), problem))?;
        let held = processors(&words[..at.unwrap_or(words.len())]).and_then(cpu_list).unwrap_or_default();
        if let Some(cpu) = held.iter().find(|cpu| load_cpus.contains(cpu)) {
            return Err(failed(
                format!("would run on processor {cpu}, which the load generator runs on"),
                "choose other processors in `cpuset`, or give the generator others with --load-cpus".into(),
            ));
        }
        let named = at.map(|at| words[at].as_str());
        let about =
            named.map(|image| ask(engine, &["image", "inspect", "--format", "{{.Id}} {{.Size}}", image]));
        if let Some(Err(error @ AskError::NoAnswer(_))) = &about {
            return Err(unanswered(error));
        }
        let known = about.and_then(Result::ok).and_then(|about| {
            let (id, bytes) = about.trim().split_once(' ')?;
            Some((id.to_owned(), bytes.parse::<u64>().ok()?))
        });
        let (Some(image), Some((id, bytes))) = (named.map(str::to_owned), known) else {
            let image = named.unwrap_or("IMAGE");
            return Err(failed(
                format!("takes {image} for its image, which is not here"),
                format!(
                    "fetch it (`{engine} pull {image}`, or `pull = true` in a study), build it (`containerfile`), or correct its name; `{engine} images` lists what is here"
                ),
            ));
        };
        let of_runtime = match engine {
            Engine::Podman => "{{.Host.OCIRuntime.Name}} {{.Host.OCIRuntime.Version}}",
            Engine::Docker => "{{.DefaultRuntime}}",
        };
        let runtime = ask(engine, &["info", "--format", of_runtime]).ok();
        let runtime = runtime.and_then(|text| text.lines().next().map(|line| line.trim().to_owned()));
        planned.artefact_bytes = planned.artefact_bytes.or(Some(bytes));
        planned.version.get_or_insert_with(|| format!("{image}, {}", short(&id)));
        planned.container =
            Some(Container { image, id, engine: format!("{engine} {}", version.trim()), runtime });
    }
    plan.services.iter().try_for_each(|service| {
        let Some((_, rest)) = container_of(&service.command) else { return Ok(()) };
        image_at(&words_of(rest)).map(drop).map_err(|remedy| PrepareError::Failed {
            what: format!("the container of the service {}", service.name),
            command: service.command.clone(),
            ended: "cannot be run by deadheat".into(),
            tail: String::new(),
            remedy,
        })
    })?;
    different_images(&plan.contenders)
}

/// The words of a shell command.
fn words_of(command: &str) -> Vec<String> {
    shlex::split(command).unwrap_or_else(|| command.split_whitespace().map(str::to_owned).collect())
}

/// Checks that two revisions do not run the same image.
fn different_images(contenders: &[Contender]) -> Result<(), PrepareError> {
    let mut images: BTreeMap<&str, &Contender> = BTreeMap::new();
    // What is mounted from the checkout may differ, also if the image is the same.
    let mounts = |one: &&Contender| {
        let words = container_of(&one.command).map(|(_, rest)| words_of(rest)).unwrap_or_default();
        let image = image_at(&words).ok().flatten().unwrap_or(words.len());
        let is_of_checkout = |word: &String| {
            let named = ["{study}", "{work}", "$PWD", "$(pwd)", "=."].iter().any(|part| word.contains(part));
            named || word.starts_with('.')
        };
        words[..image].iter().any(is_of_checkout)
    };
    let of_revisions = contenders.iter().filter(|one| one.revision.is_some() && !one.control);
    for one in of_revisions.filter(|one| !mounts(one)) {
        let Some(container) = &one.container else { continue };
        if let Some(other) = images.insert(&container.id, one) {
            return Err(PrepareError::Failed {
                what: format!("the container of {}", one.name),
                command: one.command.clone(),
                ended: format!("runs the same image as that of {}: {}", other.name, short(&container.id)),
                tail: String::new(),
                remedy: "with --git, use `containerfile`, so that each revision gets an image of its own; if it is used, both \
                         revisions make the same image, and there is nothing to compare"
                    .into(),
            });
        }
    }
    Ok(())
}

/// What cannot be done to containers there, with the remedy.
fn lacking(place: Place, limits: &[Limits], has_cpuset: bool) -> Option<(&'static str, &'static str)> {
    if place == Place::System && limits.iter().any(Limits::need_groups) {
        return Some((
            "cannot be held to the `cpus` or `memory` of a scenario, because Docker has systemd make its control group",
            "give the contender `cpus` and `memory` of its own, use podman, or start dockerd with --exec-opt native.cgroupdriver=cgroupfs",
        ));
    }
    (!has_cpuset).then_some((
        "cannot be held to processors: Docker has no control groups for that (cpuset) here",
        "use podman, or a machine with the cpuset controller",
    ))
}

/// The contenders whose image is another one than in the plan, unless they are `out`.
pub(super) fn changed(plan: &Plan, out: &[String]) -> Vec<Changed> {
    let of = |planned: &Contender| {
        let then = planned.container.as_ref()?;
        let (engine, _) = container_of(&planned.command)?;
        let now = ask(engine, &["image", "inspect", "--format", "{{.Id}}", &then.image]);
        let now = now.map_or_else(|error| error.to_string(), |id| id.trim().to_owned());
        (now != then.id).then(|| Changed { name: planned.name.clone(), then: then.id.clone(), now })
    };
    plan.contenders.iter().filter(|one| !out.contains(&one.name)).filter_map(of).collect()
}

/// The beginning of a digest, as engines show it.
fn short(id: &str) -> &str {
    let digits = id.strip_prefix("sha256:").unwrap_or(id);
    digits.get(..12).unwrap_or(digits)
}
