//! All of a cluster as one template of CloudFormation: AWS makes, changes and removes its parts in
//! the right order, and takes back what it made when one of them fails.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::options::EksOptions;

/// Outputs of the stack.
pub const ENDPOINT: &str = "Endpoint";
pub const AUTHORITY: &str = "CertificateAuthority";

/// Two zones are what EKS needs, and what each region has.
const SUBNETS: [(&str, &str); 2] = [("SubnetA", "192.168.0.0/18"), ("SubnetB", "192.168.64.0/18")];
const NETWORK_ADDRESSES: &str = "192.168.0.0/16";
/// Of images that join a cluster by themselves when they are told its name.
const JOIN_SCRIPT: &str =
    "#!/bin/bash\nset -o errexit\n/etc/eks/bootstrap.sh ${ClusterName} ${BootstrapArguments}\n";
const BOUNDARY: &str = "==PART==";

/// The template of these options.
pub fn of(options: &EksOptions) -> Value {
    let mut resources = json!({
        "Cluster": cluster(options),
        "NodeRole": role(
            "ec2",
            &["AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"],
        ),
        "LaunchTemplate": launch_template(options),
        "Nodes": nodes(options),
    });
    if options.service_role.is_empty() {
        resources["ClusterRole"] = role("eks", &["AmazonEKSClusterPolicy"]);
    }
    if options.virtual_network.is_empty()
        && let (Value::Object(all), Value::Object(network)) = (&mut resources, network(options))
    {
        all.extend(network);
    }
    json!({
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": format!("Kubernetes cluster {}", options.name),
        "Resources": resources,
        "Outputs": {
            ENDPOINT: {"Value": attribute("Cluster", "Endpoint")},
            AUTHORITY: {"Value": attribute("Cluster", "CertificateAuthorityData")},
        },
    })
}

fn reference(name: &str) -> Value {
    json!({"Ref": name})
}

fn attribute(resource: &str, name: &str) -> Value {
    json!({"Fn::GetAtt": [resource, name]})
}

fn subnets(options: &EksOptions) -> Value {
    if options.virtual_network.is_empty() {
        SUBNETS.iter().map(|(name, _)| reference(name)).collect()
    } else {
        json!(options.subnets)
    }
}

fn cluster(options: &EksOptions) -> Value {
    let role = match options.service_role.as_str() {
        "" => attribute("ClusterRole", "Arn"),
        arn if arn.starts_with("arn:") => arn.into(),
        name => json!({
            "Fn::Sub": format!("arn:${{AWS::Partition}}:iam::${{AWS::AccountId}}:role/{name}")
        }),
    };
    let mut network = json!({"SubnetIds": subnets(options)});
    if !options.security_groups.is_empty() {
        network["SecurityGroupIds"] = json!(options.security_groups);
    }
    let mut properties =
        json!({"Name": options.name, "RoleArn": role, "ResourcesVpcConfig": network});
    if !options.kubernetes_version.is_empty() {
        properties["Version"] = options.kubernetes_version.as_str().into();
    }
    json!({"Type": "AWS::EKS::Cluster", "Properties": properties})
}

/// A role that a service of AWS takes on, with policies of AWS.
fn role(service: &str, policies: &[&str]) -> Value {
    let policies: Vec<Value> = policies
        .iter()
        .map(|name| json!({"Fn::Sub": format!("arn:${{AWS::Partition}}:iam::aws:policy/{name}")}))
        .collect();
    json!({
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": {
                "Version": "2012-10-17",
                "Statement": [{
                    "Effect": "Allow",
                    "Principal":
                        {"Service": {"Fn::Sub": format!("{service}.${{AWS::URLSuffix}}")}},
                    "Action": "sts:AssumeRole",
                }],
            },
            "ManagedPolicyArns": policies,
        },
    })
}

fn launch_template(options: &EksOptions) -> Value {
    let mut groups = vec![attribute("Cluster", "ClusterSecurityGroupId")];
    groups.extend(options.security_groups.iter().map(|id| Value::from(id.as_str())));
    let has_address = options.associate_worker_node_public_ip.unwrap_or(true);
    let mut data = json!({
        "InstanceType": options.instance_type,
        "BlockDeviceMappings": [{
            "DeviceName": "/dev/xvda",
            "Ebs": {
                "VolumeSize": options.node_volume_size.unwrap_or(20),
                "VolumeType": "gp3",
                "Encrypted": options.ebs_encryption,
            },
        }],
        "NetworkInterfaces":
            [{"DeviceIndex": 0, "AssociatePublicIpAddress": has_address, "Groups": groups}],
        "TagSpecifications": [{
            "ResourceType": "instance",
            "Tags": [{"Key": "Name", "Value": format!("{}-node", options.name)}],
        }],
    });
    if !options.key_pair_name.is_empty() {
        data["KeyName"] = options.key_pair_name.as_str().into();
    }
    if !options.ami.is_empty() {
        data["ImageId"] = options.ami.as_str().into();
    }
    if let Some(script) = script(options) {
        data["UserData"] = script;
    }
    json!({"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}})
}

/// What nodes run when they start. Images of AWS get what joins the cluster from AWS, which takes
/// further scripts as parts of a mail only.
fn script(options: &EksOptions) -> Option<Value> {
    let (given, is_own_image) = (options.user_data.as_str(), !options.ami.is_empty());
    let text = match (given, is_own_image) {
        ("", false) => return None,
        ("", true) => JOIN_SCRIPT.to_owned(),
        (given, true) => given.to_owned(),
        (given, false) => format!(
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\n\n\
             --{BOUNDARY}\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\n\n{given}\n\
             --{BOUNDARY}--\n"
        ),
    };
    // Not by the template's own substitution, which would fail for each other variable of a shell.
    let text = text.replace("${ClusterName}", &options.name).replace("${BootstrapArguments}", "");
    Some(BASE64_STANDARD.encode(text).into())
}

fn nodes(options: &EksOptions) -> Value {
    let mut properties = json!({
        "ClusterName": reference("Cluster"),
        "NodeRole": attribute("NodeRole", "Arn"),
        "Subnets": subnets(options),
        "ScalingConfig": {
            "MinSize": options.minimum_nodes,
            "MaxSize": options.maximum_nodes,
            "DesiredSize": options.desired_nodes,
        },
        "LaunchTemplate": {
            "Id": reference("LaunchTemplate"),
            "Version": attribute("LaunchTemplate", "LatestVersionNumber"),
        },
    });
    // An image of one's own has its version.
    if !options.kubernetes_version.is_empty() && options.ami.is_empty() {
        properties["Version"] = options.kubernetes_version.as_str().into();
    }
    let mut nodes = json!({"Type": "AWS::EKS::Nodegroup", "Properties": properties});
    if options.virtual_network.is_empty() {
        // Nodes fetch images, so they need the way out until they are removed.
        nodes["DependsOn"] = json!(["WayOut", "SubnetARoutes", "SubnetBRoutes"]);
    }
    nodes
}

fn network(options: &EksOptions) -> Value {
    let named = |name: &str| json!([{"Key": "Name", "Value": format!("{}-{name}", options.name)}]);
    let mut all = json!({
        "Network": {
            "Type": "AWS::EC2::VPC",
            "Properties": {
                "CidrBlock": NETWORK_ADDRESSES,
                "EnableDnsHostnames": true,
                "EnableDnsSupport": true,
                "Tags": named("network"),
            },
        },
        "Gateway": {"Type": "AWS::EC2::InternetGateway"},
        "GatewayAttachment": {
            "Type": "AWS::EC2::VPCGatewayAttachment",
            "Properties": {"VpcId": reference("Network"), "InternetGatewayId": reference("Gateway")},
        },
        "Routes": {
            "Type": "AWS::EC2::RouteTable",
            "Properties": {"VpcId": reference("Network"), "Tags": named("routes")},
        },
        "WayOut": {
            "Type": "AWS::EC2::Route",
            "DependsOn": "GatewayAttachment",
            "Properties": {
                "RouteTableId": reference("Routes"),
                "DestinationCidrBlock": "0.0.0.0/0",
                "GatewayId": reference("Gateway"),
            },
        },
    });
    for (index, (name, addresses)) in SUBNETS.iter().enumerate() {
        all[*name] = json!({
            "Type": "AWS::EC2::Subnet",
            "Properties": {
                "VpcId": reference("Network"),
                "CidrBlock": addresses,
                "AvailabilityZone": {"Fn::Select": [index, {"Fn::GetAZs": ""}]},
                "MapPublicIpOnLaunch": true,
                "Tags": [
                    {"Key": "Name", "Value": format!("{}-{name}", options.name)},
                    {"Key": "kubernetes.io/role/elb", "Value": "1"},
                ],
            },
        });
        all[format!("{name}Routes")] = json!({
            "Type": "AWS::EC2::SubnetRouteTableAssociation",
            "Properties": {"SubnetId": reference(name), "RouteTableId": reference("Routes")},
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use driver_sdk::Options as _;
    use driver_sdk::types::DriverOptions;

    use super::*;

    fn options() -> EksOptions {
        let mut given = DriverOptions::default();
        for (name, value) in [("access-key", "a"), ("secret-key", "s"), ("name", "c-1")] {
            given.string_options.insert(name.to_owned(), value.to_owned());
        }
        EksOptions::read(&given).unwrap()
    }

    /// The names that a template refers to.
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match (name.as_str(), value) {
                        ("Ref" | "DependsOn", Value::String(name)) => {
                            found.insert(name.clone());
                        }
                        ("DependsOn", Value::Array(names)) => {
                            found.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
                        }
                        ("Fn::GetAtt", Value::Array(parts)) => {
                            found.extend(parts[0].as_str().map(str::to_owned));
                        }
                        (_, value) => references(value, found),
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn all_that_a_template_refers_to_is_in_it() {
        let own = EksOptions {
            virtual_network: "vpc-1".to_owned(),
            subnets: vec!["subnet-1".to_owned(), "subnet-2".to_owned()],
            security_groups: vec!["sg-1".to_owned()],
            service_role: "eks".to_owned(),
            ..options()
        };
        for options in [options(), own] {
            let template = of(&options);
            let mut found = BTreeSet::new();
            references(&template, &mut found);
            let there = template["Resources"].as_object().unwrap();
            let missing: Vec<_> = found.iter().filter(|name| !there.contains_key(*name)).collect();
            assert!(missing.is_empty(), "{missing:?}");
        }
    }

    #[test]
    fn given_parts_are_used_and_others_are_made() {
        let template = of(&options());
        assert_eq!(template["Resources"]["Cluster"]["Properties"]["Version"], Value::Null);
        assert_eq!(template["Resources"]["Network"]["Type"], "AWS::EC2::VPC");
        let scaling = &template["Resources"]["Nodes"]["Properties"]["ScalingConfig"];
        assert_eq!(*scaling, json!({"MinSize": 1, "MaxSize": 3, "DesiredSize": 3}));

        let template = of(&EksOptions {
            virtual_network: "vpc-1".to_owned(),
            subnets: vec!["subnet-1".to_owned()],
            security_groups: vec!["sg-1".to_owned()],
            service_role: "arn:aws:iam::1:role/eks".to_owned(),
            kubernetes_version: "1.35".to_owned(),
            ..options()
        });
        let resources = &template["Resources"];
        assert_eq!(
            (&resources["Network"], &resources["ClusterRole"]),
            (&Value::Null, &Value::Null)
        );
        let properties = &resources["Cluster"]["Properties"];
        assert_eq!(properties["RoleArn"], "arn:aws:iam::1:role/eks");
        assert_eq!(properties["ResourcesVpcConfig"]["SubnetIds"], json!(["subnet-1"]));
        assert_eq!(resources["Nodes"]["Properties"]["Version"], "1.35");
    }

    #[test]
    fn scripts_are_as_the_image_needs_them() {
        let decoded = |options: &EksOptions| {
            let encoded = script(options)?;
            let bytes = BASE64_STANDARD.decode(encoded.as_str().unwrap()).unwrap();
            Some(String::from_utf8(bytes).unwrap())
        };
        assert_eq!(decoded(&options()), None);
        let own_image = EksOptions { ami: "ami-1".to_owned(), ..options() };
        assert!(decoded(&own_image).unwrap().contains("bootstrap.sh c-1 "));
        let own_script =
            EksOptions { user_data: "echo $HOME ${ClusterName}".to_owned(), ..options() };
        let text = decoded(&own_script).unwrap();
        assert!(text.starts_with("MIME-Version") && text.contains("\necho $HOME c-1\n"), "{text}");
    }

    #[test]
    fn options_that_do_not_fit_together_are_named() {
        let wrong = [
            (EksOptions { desired_nodes: 5, ..options() }, "between minimum-nodes (1)"),
            (EksOptions { subnets: vec!["s".to_owned()], ..options() }, "security-groups"),
            (EksOptions { region: "Oregon".to_owned(), ..options() }, "\"Oregon\" is no region"),
        ];
        options().check().unwrap();
        for (options, said) in wrong {
            let error = options.check().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
