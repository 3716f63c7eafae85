use super::*;
use clap::CommandFactory as _;
use clap::error::ErrorKind;

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_help_has_examples() {
    let mut root = Cli::command();
    root.build();
    for command in root.get_subcommands_mut() {
        let name = command.get_name().to_owned();
        if name == "help" {
            continue;
        }
        let help = command.render_long_help().to_string();
        assert!(help.contains("Examples:"), "{name} has no examples");
        assert!(help.contains(&format!("tandem {name}")), "{name}");
    }
}

#[test]
fn help_names_the_environment() {
    let help = |name: &str| {
        let mut root = Cli::command();
        root.build();
        let command = root.find_subcommand_mut(name).unwrap();
        command.render_long_help().to_string()
    };
    for variable in [
        "TANDEM_LISTEN",
        "TANDEM_STORE",
        "TANDEM_WORKFLOWS",
        "TANDEM_AGENTS",
        "TANDEM_HOST_ID",
        "TANDEM_PUBLIC_URL",
        "TANDEM_CONFIG",
        "TANDEM_TEST_SEAMS",
        "TANDEM_LOG_FORMAT",
        "TANDEM_SECRETS",
        "TANDEM_MCP_SERVERS",
        "TANDEM_API_KEY",
        "TANDEM_TENANT2_API_KEY",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ] {
        assert!(help("serve").contains(variable), "{variable}");
    }
    assert!(help("run").contains("TANDEM_URL"));
    assert!(help("run").contains("TANDEM_API_KEY"));
    assert!(help("run").contains("Exit codes:"));
}

#[test]
fn unimplemented_capabilities_have_no_commands() {
    let parsed = Cli::try_parse_from(["tandem", "mcp"]);
    let kind = parsed.err().map(|error| error.kind());
    assert_eq!(kind, Some(ErrorKind::InvalidSubcommand));
}

#[test]
fn commands_parse_as_documented() {
    for line in [
        "tandem dev --open --listen 127.0.0.1:1",
        "tandem serve --listen 127.0.0.1:0 --store sqlite:x --workflows a --workflows b --agents c \
         --host-id h --public-url http://x --config f --test-seams --log-format json",
        "tandem run hello --input {} --follow --tag a --tag b --idempotency-key k --json",
        "tandem run hello --url http://x --key k",
        "tandem runs list --status running --workflow w --limit 5",
        "tandem runs show run-1",
        "tandem runs events run-1 --follow --mode values",
        "tandem runs cancel run-1 --reason why",
        "tandem runs pause run-1 --now",
        "tandem runs resume run-1",
        "tandem inbox list --kind approval --run run-1 --limit 5 --json",
        "tandem inbox show q1",
        "tandem inbox approve q1 --comment fine --digest abc",
        "tandem inbox reject q1 --comment no",
        "tandem inbox answer q1 --value {}",
        "tandem inbox claim q1 --admin-token t",
        "tandem inbox release q1 --json",
        "tandem inbox assign q1 --to ben",
        "tandem inbox takeover ses-1 --admin-token t",
        "tandem audit rebuild ses-1 ses-2",
        "tandem audit rebuild --agent desk --json",
        "tandem schedules list --agent desk --status active",
        "tandem schedules create --agent desk --flow hello --user ana --cron * --json",
        "tandem schedules pause sch-1",
        "tandem inbox write ses-1 --text hello --message-id m-1",
        "tandem inbox handback ses-1 --note calm --json",
        "tandem inbox answer q1 --set a=1 --set b=x=y --digest abc",
        "tandem keys create ci --scope runs:read --role admin --expires-at 2027-01-01T00:00:00Z",
        "tandem keys create ci --scope all --tenant acme",
        "tandem keys create ci --scope all --tenant acme --store sqlite:x.db",
        "tandem runs ancestry RUN --json",
        "tandem keys list",
        "tandem keys revoke key_1",
        "tandem keys revoke key_1 --with-made --json",
        "tandem keys revoke key_1 --keep-made",
        "tandem keys rotate key_1",
        "tandem backup to.db --store sqlite:x --force",
        "tandem restore to.db --store sqlite:x",
        "tandem export --run a --run b --tenant t --out f",
        "tandem import f --store sqlite:x",
        "tandem storage --store sqlite:x --config f --json",
        "tandem parked list --json",
        "tandem parked retry run:run-1",
        "tandem check a.json b/",
        "tandem dev --agents a --agents b",
        "tandem chat desk --user u1 --url http://x --key k --json",
        "tandem agents new desk --dir somewhere",
        "tandem agents list --json",
        "tandem agents show desk",
        "tandem types",
    ] {
        let parsed = Cli::try_parse_from(line.split_whitespace());
        assert!(parsed.is_ok(), "{line}: {}", parsed.err().unwrap());
    }
    for wrong in [
        "tandem runs list --status asleep",
        "tandem inbox answer q1",
        "tandem inbox assign q1",
        "tandem inbox answer q1 --value {} --set a=1",
        "tandem inbox answer q1 --set nothing",
        "tandem chat",
        "tandem agents new a/b",
    ] {
        let parsed = Cli::try_parse_from(wrong.split_whitespace());
        assert!(parsed.is_err(), "{wrong}");
    }
}

#[test]
fn branch_requires_from_and_replay_takes_no_tags() {
    let parses = |line: &str| Cli::try_parse_from(line.split_whitespace()).is_ok();
    assert!(parses("tandem runs fork run-1"));
    assert!(parses("tandem runs fork run-1 --from 3"));
    assert!(parses(
        "tandem runs fork run-1 --branch --from 3 --tag again"
    ));
    assert!(!parses("tandem runs fork run-1 --branch"));
    assert!(!parses("tandem runs fork run-1 --tag again"));
    assert!(!parses("tandem runs fork run-1 --from -1"));
    assert!(parses("tandem runs diff run-1 run-2"));
    assert!(!parses("tandem runs diff run-1"));
}
