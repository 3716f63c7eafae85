//! A server on loopback that records requests and replies with given bytes.

use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

pub(super) struct Server {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone)]
pub(super) struct Request {
    pub(super) line: String,
    headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Request {
    /// Every value of a header, whose name is given in lower case.
    pub(super) fn header(&self, name: &str) -> Vec<&str> {
        self.headers
            .iter()
            .filter(|(sent, _)| sent == name)
            .map(|(_, value)| value.as_str())
            .collect()
    }
}

/// What the server does with a request.
#[derive(Clone)]
pub(super) enum CannedResponse {
    Bytes(Vec<u8>),
    /// Writes the bytes, then keeps the connection open without sending.
    Stall(Vec<u8>),
    /// Writes the first bytes, then the others once in a second, for ever.
    Drip(Vec<u8>, &'static [u8]),
    HangUp,
}

impl CannedResponse {
    pub(super) fn new(status: &str, headers: &[&str], body: &str) -> Self {
        let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
        for header in headers {
            text += &format!("{header}\r\n");
        }
        Self::Bytes(format!("{text}\r\n{body}").into_bytes())
    }

    pub(super) fn json(status: &str, body: &str) -> Self {
        Self::new(status, &["content-type: application/json"], body)
    }
}

impl Server {
    pub(super) async fn responding_with(answer: CannedResponse) -> Self {
        Self::responding_by(move |_| answer.clone()).await
    }

    /// With a response for each request.
    pub(super) async fn responding_by(
        answer: impl Fn(&Request) -> CannedResponse + Clone + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn({
            let requests = requests.clone();
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, answer.clone(), requests.clone()));
                }
            }
        });
        Self { url, requests }
    }

    pub(super) async fn requests(&self) -> Vec<Request> {
        self.requests.lock().await.clone()
    }

    pub(super) async fn only_request(&self) -> Request {
        let requests = self.requests().await;
        assert_eq!(requests.len(), 1);
        requests[0].clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: impl Fn(&Request) -> CannedResponse,
    requests: Arc<Mutex<Vec<Request>>>,
) {
    let mut bytes = Vec::new();
    let mut request = parse(&bytes);
    while request.is_none() {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
        request = parse(&bytes);
    }
    let request = request.expect("read to its end");
    let answer = answer(&request);
    requests.lock().await.push(request);
    match answer {
        // The client may close the connection before it has read everything.
        CannedResponse::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
        }
        CannedResponse::Stall(bytes) => {
            let _ = stream.write_all(&bytes).await;
            std::future::pending::<()>().await;
        }
        CannedResponse::Drip(bytes, drop) => {
            let _ = stream.write_all(&bytes).await;
            while stream.write_all(drop).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        CannedResponse::HangUp => {}
    }
}

fn parse(bytes: &[u8]) -> Option<Request> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let request = Request {
        line: lines.next()?.to_owned(),
        headers: lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect(),
        body: body.to_owned(),
    };
    let expected = request
        .header("content-length")
        .first()
        .map_or(0, |length| length.parse().unwrap());
    (body.len() >= expected).then_some(request)
}
