//! `#[derive(Options)]`: the flags of a cluster driver from the fields of a struct. What it makes
//! is documented at `driver_sdk::Options`.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Code;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Expr, ExprLit, Field, Fields, Lit, LitStr, Meta};

/// Implements `driver_sdk::Options`.
#[proc_macro_derive(Options, attributes(flag))]
pub fn options(input: TokenStream) -> TokenStream {
    let parsed = syn::parse(input).and_then(|input| implementation(&input));
    parsed.unwrap_or_else(|error| error.to_compile_error()).into()
}

fn implementation(input: &DeriveInput) -> Result<Code, Error> {
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => &fields.named,
            _ => return Err(Error::new_spanned(input, "options need a struct with named fields")),
        },
        _ => return Err(Error::new_spanned(input, "options need a struct")),
    };
    let declared: Vec<(&Field, Code)> = fields
        .iter()
        .map(|field| Ok((field, declaration(field)?)))
        .collect::<Result<_, Error>>()?;
    let flags = declared.iter().map(|(_, code)| quote!(#code.flag()));
    let reads = declared.iter().map(|(field, code)| {
        let name = &field.ident;
        quote!(#name: #code.read(given)?)
    });
    let name = &input.ident;
    Ok(quote! {
        impl ::driver_sdk::Options for #name {
            fn flags() -> ::driver_sdk::types::DriverFlags {
                let options = [#(#flags),*];
                ::driver_sdk::types::DriverFlags { options: options.into_iter().collect() }
            }

            fn read(
                given: &::driver_sdk::types::DriverOptions,
            ) -> ::core::result::Result<Self, ::driver_sdk::InvalidOption> {
                ::core::result::Result::Ok(Self { #(#reads),* })
            }
        }
    })
}

/// What the attributes of a field say of its flag.
#[derive(Default)]
struct Attributes {
    name: Option<String>,
    default: Option<Expr>,
    is_password: bool,
    is_required: bool,
    usage: Vec<String>,
}

fn declaration(field: &Field) -> Result<Code, Error> {
    let attributes = Attributes::of(&field.attrs)?;
    let kind = &field.ty;
    let ident = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
    let name = attributes.name.unwrap_or_else(|| ident.trim_start_matches("r#").replace('_', "-"));
    if attributes.usage.is_empty() {
        return Err(Error::new_spanned(field, "an option needs a comment: users see it as help"));
    }
    let usage = attributes.usage.join(" ").trim_end_matches('.').to_owned();
    let (is_password, is_required) = (attributes.is_password, attributes.is_required);
    let default = match attributes.default {
        Some(value) => quote!(::core::option::Option::Some(
            ::core::convert::Into::<<#kind as ::driver_sdk::OptionValue>::Plain>::into(#value)
        )),
        None => quote!(::core::option::Option::None),
    };
    Ok(quote! {
        ::driver_sdk::Declaration::<#kind> {
            name: #name,
            usage: #usage,
            is_password: #is_password,
            is_required: #is_required,
            default: #default,
        }
    })
}

impl Attributes {
    fn of(attributes: &[Attribute]) -> Result<Self, Error> {
        let mut found = Self::default();
        for attribute in attributes {
            if let Meta::NameValue(pair) = &attribute.meta
                && pair.path.is_ident("doc")
                && let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &pair.value
            {
                found.usage.push(line.value().trim().to_owned());
            } else if attribute.path().is_ident("flag") {
                attribute.parse_nested_meta(|meta| {
                    if meta.path.is_ident("password") {
                        found.is_password = true;
                    } else if meta.path.is_ident("required") {
                        found.is_required = true;
                    } else if meta.path.is_ident("default") {
                        found.default = Some(meta.value()?.parse()?);
                    } else if meta.path.is_ident("name") {
                        found.name = Some(meta.value()?.parse::<LitStr>()?.value());
                    } else {
                        return Err(meta.error("known are default, name, password and required"));
                    }
                    Ok(())
                })?;
            }
        }
        Ok(found)
    }
}
