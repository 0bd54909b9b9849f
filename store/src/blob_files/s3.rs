//! Any store that speaks S3. The library signs URLs, and our code sends the requests.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, header::CONTENT_TYPE};
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use url::Url;

use super::{ObjectStore, PUT_LIMIT};
use crate::{api::Result, error::StoreError};

/// The time to connect, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The lifetime of a signature. Clocks may differ by a part of this time.
const SIGNED_FOR: Duration = Duration::from_secs(300);

/// The address of the bucket, and the credentials.
#[derive(Clone)]
pub struct S3Config {
    /// The address of the service, like `https://s3.eu-central-1.amazonaws.com`.
    pub endpoint: Url,
    /// The region that signatures name.
    pub region: String,
    /// The bucket, which must exist.
    pub bucket: String,
    /// The prefix of every key.
    pub prefix: String,
    /// True: the bucket's name is part of the path; false: part of the host name.
    pub is_path_style: bool,
    /// The id of the access key.
    pub key_id: String,
    /// The secret of the access key.
    pub secret: String,
    /// The session token of a temporary access key.
    pub token: Option<String>,
}

/// A bucket of a store that speaks S3.
pub struct S3Store {
    http: Client,
    bucket: Bucket,
    credentials: Credentials,
    prefix: String,
}

impl S3Store {
    /// Makes the client, without connecting.
    pub fn new(config: S3Config) -> Result<Self> {
        let style = if config.is_path_style {
            UrlStyle::Path
        } else {
            UrlStyle::VirtualHost
        };
        let bucket = Bucket::new(config.endpoint, style, config.bucket, config.region);
        let http = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(PUT_LIMIT)
            .redirect(reqwest::redirect::Policy::none())
            .build();
        let credentials = match config.token {
            Some(token) => Credentials::new_with_token(config.key_id, config.secret, token),
            None => Credentials::new(config.key_id, config.secret),
        };
        Ok(Self {
            http: http.map_err(away)?,
            bucket: bucket.map_err(|error| StoreError::ObjectsUnavailable(error.to_string()))?,
            credentials,
            prefix: config.prefix,
        })
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.http.request(method, url)
    }
}

#[async_trait]
impl ObjectStore for S3Store {
    fn key_of(&self, blob_id: &str) -> String {
        format!("{}{blob_id}", self.prefix)
    }

    async fn put(&self, key: &str, bytes: Vec<u8>, media_type: &str) -> Result<()> {
        let url = self.bucket.put_object(Some(&self.credentials), key);
        let request = self
            .request(Method::PUT, url.sign(SIGNED_FOR))
            .header(CONTENT_TYPE, media_type)
            .body(bytes);
        let answer = request.send().await.map_err(away)?;
        done(answer).await.map(drop)
    }

    async fn get(&self, key: &str, bytes: u32) -> Result<Option<Vec<u8>>> {
        let url = self.bucket.get_object(Some(&self.credentials), key);
        let request = self.request(Method::GET, url.sign(SIGNED_FOR));
        let answer = request.send().await.map_err(away)?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let mut answer = done(answer).await?;
        let most = bytes as usize;
        let mut read = Vec::with_capacity(most);
        while let Some(chunk) = answer.chunk().await.map_err(away)? {
            if read.len() + chunk.len() > most {
                let message = format!("the object `{key}` has more than {most} bytes");
                return Err(StoreError::Corrupt(message));
            }
            read.extend_from_slice(&chunk);
        }
        Ok(Some(read))
    }

    async fn remove(&self, key: &str) -> Result<()> {
        let url = self.bucket.delete_object(Some(&self.credentials), key);
        let request = self.request(Method::DELETE, url.sign(SIGNED_FOR));
        let answer = request.send().await.map_err(away)?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(());
        }
        done(answer).await.map(drop)
    }
}

/// Returns the response, or an error if the service refused the request. The error omits the response body, because the
/// body may repeat the key's id.
async fn done(answer: Response) -> Result<Response> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    // Reading the body frees the connection for reuse.
    let _body = answer.bytes().await;
    Err(StoreError::ObjectsUnavailable(format!(
        "it answered with status {status}"
    )))
}

/// Returns the error without its URL, because the URL has a signature.
fn away(error: reqwest::Error) -> StoreError {
    let error = error.without_url();
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    StoreError::ObjectsUnavailable(match cause {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    })
}
