//! From a location to the service that serves it: its settings, and what to do when it refuses.

use http::Request;
#[cfg(feature = "hub")]
use http::header::AUTHORIZATION;
use opendal::services::{Gcs, Http, S3};
use opendal::{Buffer, Builder, ErrorKind, HttpTransporter, OperationContext, Operator};

use super::redact::redact;
use super::transport::Transport;
use crate::Error;
use crate::location::{HubKind, Location, Login};

/// The service of a location, to be asked through `transport`.
pub(super) fn operator(
    location: &Location,
    revision: Option<&str>,
    transport: Transport,
) -> Result<Operator, Error> {
    match location {
        Location::Local(_) => unreachable!("a directory is no remote source"),
        Location::Hub {
            kind, id, folder, ..
        } => hub(location, *kind, id, revision, folder, transport),
        Location::S3 { bucket, folder } => {
            let mut builder = S3::default().bucket(bucket).root(folder);
            let endpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]
                .into_iter()
                .find_map(var);
            if let Some(endpoint) = &endpoint {
                builder = builder.endpoint(endpoint.trim_end_matches('/'));
            }
            if var("AWS_REGION")
                .or_else(|| var("AWS_DEFAULT_REGION"))
                .is_none()
            {
                if endpoint.is_none() {
                    return Err(Error::Settings {
                        url: location.to_string(),
                        reason: "set AWS_REGION to the bucket's region, such as us-east-1"
                            .to_owned(),
                    });
                }
                // What is not Amazon's has no regions, but signatures name one.
                builder = builder.region("us-east-1");
            }
            if is_on("AWS_SKIP_SIGNATURE") {
                builder = builder.skip_signature();
            }
            if is_on("AWS_EC2_METADATA_DISABLED") {
                builder = builder.disable_ec2_metadata();
            }
            finish(location, builder, transport)
        }
        Location::Gcs { bucket, folder } => {
            let mut builder = Gcs::default().bucket(bucket).root(folder);
            if let Some(host) = var("STORAGE_EMULATOR_HOST") {
                let scheme = if host.contains("://") { "" } else { "http://" };
                builder = builder
                    .endpoint(&format!("{scheme}{host}"))
                    .skip_signature();
            }
            if is_on("GOOGLE_SKIP_SIGNATURE") {
                builder = builder.skip_signature();
            }
            finish(location, builder, transport)
        }
        Location::Http {
            endpoint,
            folder,
            login,
        } => {
            let mut builder = Http::default().endpoint(endpoint).root(folder);
            if let Some(Login { user, password }) = login {
                builder = builder.username(user).password(password);
            }
            finish(location, builder, transport)
        }
    }
}

fn finish(
    location: &Location,
    builder: impl Builder,
    transport: Transport,
) -> Result<Operator, Error> {
    let operator = Operator::new(builder).map_err(|error| Error::Settings {
        url: location.to_string(),
        reason: redact(error.message()),
    })?;
    let context = OperationContext::new().with_http_transport(HttpTransporter::new(transport));
    Ok(operator.with_context(context))
}

#[cfg(feature = "hub")]
fn hub(
    location: &Location,
    kind: HubKind,
    id: &str,
    revision: Option<&str>,
    folder: &str,
    transport: Transport,
) -> Result<Operator, Error> {
    let mut builder = opendal::services::Hf::default()
        .repo_type(match kind {
            HubKind::Dataset => "dataset",
            HubKind::Bucket => "bucket",
        })
        .repo_id(id)
        .root(folder)
        .endpoint(&endpoint())
        // All requests go through the one transport: counted, limited, and repeated.
        .download_mode("http");
    if let Some(revision) = revision {
        // The files of a commit never change, so that a link to one leads to the same for as long as it holds.
        builder = builder.revision(revision).enable_resolve_cache(true);
    }
    if let Some(token) = token() {
        builder = builder.token(&token);
    }
    finish(location, builder, transport)
}

#[cfg(not(feature = "hub"))]
fn hub(
    location: &Location,
    _kind: HubKind,
    _id: &str,
    _revision: Option<&str>,
    _folder: &str,
    _transport: Transport,
) -> Result<Operator, Error> {
    Err(not_built_in(location))
}

#[cfg(not(feature = "hub"))]
fn not_built_in(location: &Location) -> Error {
    Error::NotBuiltIn {
        url: location.to_string(),
        feature: "hub",
    }
}

/// The question which commit a dataset's revision is; none where there are no revisions.
#[cfg(feature = "hub")]
pub(super) fn revision_request(location: &Location) -> Result<Option<Request<Buffer>>, Error> {
    let Location::Hub {
        kind: HubKind::Dataset,
        id,
        revision,
        ..
    } = location
    else {
        return Ok(None);
    };
    let revision = revision.as_deref().unwrap_or("main").replace('/', "%2F");
    let uri = format!("{}/api/datasets/{id}/revision/{revision}", endpoint());
    let mut request = Request::get(uri);
    if let Some(token) = token() {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request
        .body(Buffer::new())
        .map_err(|error| Error::Settings {
            url: location.to_string(),
            reason: format!(
                "HF_ENDPOINT, HF_TOKEN or the revision cannot stand in a request: {error}"
            ),
        })?;
    Ok(Some(request))
}

#[cfg(not(feature = "hub"))]
pub(super) fn revision_request(location: &Location) -> Result<Option<Request<Buffer>>, Error> {
    match location {
        Location::Hub { .. } => Err(not_built_in(location)),
        _ => Ok(None),
    }
}

/// Asks which commit a revision is.
pub(super) async fn revision(
    transport: Transport,
    request: Request<Buffer>,
) -> opendal::Result<String> {
    let response = HttpTransporter::new(transport).send(request).await?;
    let status = response.status();
    if !status.is_success() {
        return Err(opendal::Error::new(
            ErrorKind::Unexpected,
            status.to_string(),
        ));
    }
    let answer: Option<serde_json::Value> =
        serde_json::from_slice(&response.body().to_bytes()).ok();
    let sha = answer
        .as_ref()
        .and_then(|answer| answer.get("sha")?.as_str());
    sha.map(str::to_owned).ok_or_else(|| {
        opendal::Error::new(ErrorKind::Unexpected, "the Hub's answer names no commit")
    })
}

/// What to do about an answer of this status.
pub(super) fn hint(location: &Location, status: Option<u16>) -> Option<String> {
    let hint = match (location, status?) {
        (_, 412) => "the file was changed while it was being read: start again",
        (Location::Hub { .. }, 401) => {
            "the name is misspelt, or the repository is private or gated: set HF_TOKEN to a token that may read it, or log in with \
             `hf auth login`"
        }
        (Location::Hub { .. }, 403) => {
            "accept the repository's conditions on its page, and use a token (HF_TOKEN) that may read it"
        }
        (Location::Hub { .. }, 404) => {
            "check the spelling of OWNER/NAME, the revision, and that this is a dataset of LeRobot's"
        }
        (Location::S3 { .. }, 400 | 401 | 403) => {
            "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, and that they may list and read this prefix; for a public bucket \
             set AWS_SKIP_SIGNATURE=true"
        }
        (Location::S3 { .. }, 404) => {
            "check the bucket's name and the prefix, and AWS_ENDPOINT_URL where it is not Amazon's"
        }
        (Location::Gcs { .. }, 401 | 403) => {
            "check GOOGLE_APPLICATION_CREDENTIALS, and that they may list and read this prefix; for a public bucket set \
             GOOGLE_SKIP_SIGNATURE=true"
        }
        (Location::Gcs { .. }, 404) => "check the bucket's name and the prefix",
        (Location::Http { .. }, 401 | 403) => {
            "the server wants a user and a password (https://USER:PASSWORD@HOST/PATH), or other ones"
        }
        (Location::Http { .. }, 404) => {
            "check the URL: it is that of the folder in which `meta/info.json` lies"
        }
        (_, 429) => "ask for less at once (max_requests), or come back later",
        _ => return None,
    };
    Some(hint.to_owned())
}

#[cfg(feature = "hub")]
fn endpoint() -> String {
    let endpoint = var("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".to_owned());
    endpoint.trim_end_matches('/').to_owned()
}

/// The token for the Hub, from where `huggingface_hub` takes it.
#[cfg(feature = "hub")]
fn token() -> Option<String> {
    use std::path::PathBuf;

    if is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
        return None;
    }
    let token = var("HF_TOKEN").or_else(|| var("HUGGING_FACE_HUB_TOKEN"));
    let file = || {
        let home = || {
            let cache = var("XDG_CACHE_HOME").map(PathBuf::from);
            let cache = cache.or_else(|| Some(PathBuf::from(var("HOME")?).join(".cache")))?;
            Some(cache.join("huggingface"))
        };
        let path = var("HF_TOKEN_PATH").map(PathBuf::from).or_else(|| {
            let home = var("HF_HOME").map(PathBuf::from).or_else(home)?;
            Some(home.join("token"))
        })?;
        std::fs::read_to_string(path).ok()
    };
    let token = token.or_else(file)?.trim().to_owned();
    (!token.is_empty()).then_some(token)
}

/// A variable of the environment that is set to something.
fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether a variable of the environment is set to yes.
fn is_on(name: &str) -> bool {
    var(name).is_some_and(|value| {
        matches!(
            value.to_ascii_lowercase().as_str(),
            "1" | "true" | "yes" | "on"
        )
    })
}
