//! What is needed of AWS: stacks of CloudFormation, and tokens for clusters of EKS.
//! <https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference>

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign,
};
use aws_sigv4::sign::v4;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use reqwest::Request;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::options::EksOptions;
use crate::cloud::{Cloud, CloudError};

const VERSION: &str = "2010-05-15";
/// What AWS says of a stack that does not exist, with the code of any invalid request.
const NO_STACK: &str = "does not exist";
/// What AWS says of a change without a difference, with the same code.
const NO_CHANGE: &str = "No updates are to be performed";
/// Prefix of tokens for clusters of EKS. The rest is a signed request that the cluster sends to
/// AWS.
const TOKEN_PREFIX: &str = "k8s-aws-v1.";
/// Header of that request: the name of the cluster.
const CLUSTER_HEADER: &str = "x-k8s-aws-id";
/// Longest that AWS takes for such a token.
const TOKEN_TIME: Duration = Duration::from_secs(900);

/// A list, as this API writes it.
#[derive(Clone, Debug, Deserialize)]
struct Members<T> {
    #[serde(default = "Vec::new")]
    member: Vec<T>,
}

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self { member: Vec::new() }
    }
}

/// What CloudFormation shows of a stack.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Stack {
    #[serde(rename = "StackStatus")]
    pub status: String,
    #[serde(rename = "StackStatusReason", default)]
    pub reason: String,
    #[serde(default)]
    outputs: Members<Output>,
    #[serde(default)]
    tags: Members<Tag>,
}

#[derive(Clone, Debug, Deserialize)]
struct Output {
    #[serde(rename = "OutputKey")]
    key: String,
    #[serde(rename = "OutputValue", default)]
    value: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tag {
    key: String,
    #[serde(default)]
    value: String,
}

impl Stack {
    /// A value that the template names.
    pub fn output(&self, key: &str) -> Result<&str> {
        let mut found = self.outputs.member.iter().filter(|output| output.key == key);
        let found = found.next().map(|output| output.value.as_str());
        found.with_context(|| format!("the stack has no output {key}"))
    }

    /// Whether it has this tag.
    pub fn has_tag(&self, key: &str, value: &str) -> bool {
        self.tags.member.iter().any(|tag| tag.key == key && tag.value == value)
    }
}

/// What happened to a part of a stack.
#[derive(Clone, Debug, Deserialize)]
pub struct StackEvent {
    #[serde(rename = "LogicalResourceId", default)]
    pub part: String,
    #[serde(rename = "ResourceStatus", default)]
    pub status: String,
    #[serde(rename = "ResourceStatusReason", default)]
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Described {
    describe_stacks_result: DescribedStacks,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedStacks {
    #[serde(default)]
    stacks: Members<Stack>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedEvents {
    describe_stack_events_result: StackEvents,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StackEvents {
    #[serde(default)]
    stack_events: Members<StackEvent>,
}

/// Some responses have nothing that is needed.
#[derive(Deserialize)]
struct Ignored {}

/// AWS, with a key, for one cluster.
pub struct Aws<'a> {
    cloud: Cloud,
    options: &'a EksOptions,
}

impl<'a> Aws<'a> {
    /// # Errors
    /// The machine has no certificate authorities.
    pub fn open(options: &'a EksOptions) -> Result<Self> {
        Ok(Self { cloud: Cloud::new("AWS", explain)?, options })
    }

    /// The stack of the cluster, if it exists.
    pub async fn stack(&self) -> Result<Option<Stack>> {
        match self.call::<Described>("DescribeStacks", &[]).await {
            Ok(found) => Ok(found.describe_stacks_result.stacks.member.into_iter().next()),
            Err(error) if error.to_string().contains(NO_STACK) => Ok(None),
            Err(error) => Err(error).context("cannot read the stack"),
        }
    }

    /// What happened to it, the newest first.
    pub async fn events(&self) -> Result<Vec<StackEvent>> {
        let found: DescribedEvents = self.call("DescribeStackEvents", &[]).await?;
        Ok(found.describe_stack_events_result.stack_events.member)
    }

    /// Orders the stack.
    pub async fn create(&self, template: &Value, tag: (&str, &str)) -> Result<(), CloudError> {
        let template = template.to_string();
        let parameters = [
            ("TemplateBody", template.as_str()),
            ("Capabilities.member.1", "CAPABILITY_IAM"),
            ("Tags.member.1.Key", tag.0),
            ("Tags.member.1.Value", tag.1),
        ];
        self.call::<Ignored>("CreateStack", &parameters).await.map(drop)
    }

    /// Orders a change. Whether there is one.
    pub async fn update(&self, template: &Value) -> Result<bool, CloudError> {
        let template = template.to_string();
        let parameters =
            [("TemplateBody", template.as_str()), ("Capabilities.member.1", "CAPABILITY_IAM")];
        match self.call::<Ignored>("UpdateStack", &parameters).await {
            Ok(_) => Ok(true),
            Err(error) if error.to_string().contains(NO_CHANGE) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Has the stack removed.
    pub async fn delete(&self) -> Result<(), CloudError> {
        self.call::<Ignored>("DeleteStack", &[]).await.map(drop)
    }

    /// A token by which the cluster knows the key.
    pub fn token(&self) -> Result<String> {
        let host = self.host("sts");
        let url = format!("https://{host}/?Action=GetCallerIdentity&Version=2011-06-15");
        let mut settings = SigningSettings::default();
        settings.signature_location = SignatureLocation::QueryParams;
        settings.expires_in = Some(TOKEN_TIME);
        let request = http::Request::get(&url)
            .header("host", &host)
            .header(CLUSTER_HEADER, &self.options.name)
            .body(Vec::new())?;
        let signed = self.sign("sts", request, settings)?;
        Ok(format!("{TOKEN_PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(signed.uri().to_string())))
    }

    fn host(&self, service: &str) -> String {
        let region = &self.options.region;
        let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
        format!("{service}.{region}.amazonaws.com{suffix}")
    }

    async fn call<T: DeserializeOwned>(
        &self,
        action: &str,
        parameters: &[(&str, &str)],
    ) -> Result<T, CloudError> {
        let host = self.host("cloudformation");
        let form: String = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("Action", action), ("Version", VERSION)])
            .append_pair("StackName", &self.options.name)
            .extend_pairs(parameters)
            .finish();
        let build = || {
            let request = http::Request::post(format!("https://{host}/"))
                .header("host", &host)
                .header("content-type", "application/x-www-form-urlencoded; charset=utf-8")
                .body(form.clone().into_bytes())?;
            let signed = self.sign("cloudformation", request, SigningSettings::default())?;
            Ok(Request::try_from(signed)?)
        };
        let response = self.cloud.call(build).await?;
        quick_xml::de::from_str(&response.body)
            .map_err(|error| CloudError::Request(format!("AWS's response cannot be read: {error}")))
    }

    /// Signature version 4.
    fn sign(
        &self,
        service: &str,
        mut request: http::Request<Vec<u8>>,
        settings: SigningSettings,
    ) -> Result<http::Request<Vec<u8>>> {
        let options = self.options;
        let session = Some(options.session_token.clone()).filter(|token| !token.is_empty());
        let (key, secret) = (options.access_key.trim(), options.secret_key.trim());
        let identity = Credentials::new(key, secret, session, None, "options").into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&options.region)
            .name(service)
            .time(SystemTime::now())
            .settings(settings)
            .build()?
            .into();
        let headers = request.headers().iter();
        let headers =
            headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let signable = SignableRequest::new(
            request.method().as_str(),
            request.uri().to_string(),
            headers,
            SignableBody::Bytes(request.body()),
        )?;
        let (instructions, _) = sign(signable, &parameters)?.into_parts();
        instructions.apply_to_request_http1x(&mut request);
        Ok(request)
    }
}

/// A refusal of AWS.
fn explain(body: &str) -> Option<(String, String)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Outer {
        error: Inner,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Inner {
        code: String,
        #[serde(default)]
        message: String,
    }
    let Outer { error } = quick_xml::de::from_str(body).ok()?;
    Some((error.code, error.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_read() {
        let xml = "<DescribeStacksResponse><DescribeStacksResult><Stacks><member>\
            <StackName>c-1</StackName><StackStatus>CREATE_COMPLETE</StackStatus><Outputs>\
            <member><OutputKey>Endpoint</OutputKey><OutputValue>https://a</OutputValue></member>\
            <member><OutputKey>Other</OutputKey><OutputValue>b</OutputValue></member></Outputs>\
            <Tags><member><Key>k</Key><Value>v</Value></member></Tags></member></Stacks>\
            </DescribeStacksResult></DescribeStacksResponse>";
        let found: Described = quick_xml::de::from_str(xml).unwrap();
        let stack = &found.describe_stacks_result.stacks.member[0];
        assert_eq!(
            (stack.status.as_str(), stack.output("Endpoint").unwrap()),
            ("CREATE_COMPLETE", "https://a")
        );
        assert!(stack.has_tag("k", "v") && stack.output("None").is_err());
        let xml = "<ErrorResponse><Error><Type>Sender</Type><Code>ValidationError</Code>\
            <Message>Stack with id c-1 does not exist</Message></Error></ErrorResponse>";
        let expected = "Stack with id c-1 does not exist".to_owned();
        assert_eq!(explain(xml), Some(("ValidationError".to_owned(), expected)));
        assert_eq!(explain("{}"), None);
    }

    #[test]
    fn a_token_is_a_signed_request_with_the_name_of_the_cluster() {
        let options = EksOptions {
            name: "c-1".to_owned(),
            access_key: "AKIA".to_owned(),
            secret_key: "secret".to_owned(),
            region: "us-west-2".to_owned(),
            ..EksOptions::default()
        };
        let token = Aws::open(&options).unwrap().token().unwrap();
        let url = BASE64_URL_SAFE_NO_PAD.decode(token.strip_prefix(TOKEN_PREFIX).unwrap()).unwrap();
        let url = String::from_utf8(url).unwrap();
        assert!(url.starts_with("https://sts.us-west-2.amazonaws.com/?Action=GetCallerIdentity"));
        for part in
            ["X-Amz-Expires=900", "X-Amz-SignedHeaders=host%3Bx-k8s-aws-id", "X-Amz-Signature="]
        {
            assert!(url.contains(part), "{part} in {url}");
        }
    }
}
