# Completion of siteline for bash. Made from its parser: python -m siteline.cli.completions --write

_siteline_reply() {
    local line
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done
}

_siteline_words() {
    _siteline_reply < <(compgen -W "$1" -- "$current")
}

_siteline_paths() {
    compopt -o filenames 2>/dev/null || :
    _siteline_reply < <(compgen "$1" -- "$current")
}

_siteline_describe() {
    commands="" options="" valued=""
    case $command in
    "")
        commands="keygen profile doctor token discover plan pull sync coverage lateness changes store allowance agent sandbox completion"
        options="-h --help --version"
        valued=""
        ;;
    "keygen")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress --bits --overwrite --encrypt --passphrase-file --password-command"
        valued="--profile --bits --passphrase-file --password-command"
        ;;
    "profile")
        commands="init list show"
        options="-h --help"
        valued=""
        ;;
    "profile init")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress --base-url --subject --private-key-file --password-command --kid --certificate-file --client-id --strict --scopes --audience --daily-allowance --allowance-resets --ledger --agent --settle-lag --assertion-lifetime --clock-tolerance --typ --max-retry-after --tries --connect-timeout --response-timeout --idle-timeout --max-connections --max-body-bytes --application --allow-http --ca-bundle --proxy"
        valued="--profile --base-url --subject --private-key-file --password-command --kid --certificate-file --client-id --scopes --audience --daily-allowance --allowance-resets --ledger --agent --settle-lag --assertion-lifetime --clock-tolerance --max-retry-after --tries --connect-timeout --response-timeout --idle-timeout --max-connections --max-body-bytes --application --ca-bundle --proxy"
        ;;
    "profile list")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress"
        valued="--profile"
        ;;
    "profile show")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress"
        valued="--profile"
        ;;
    "doctor")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress --offline --enrolled-jwk --store"
        valued="--profile --enrolled-jwk --store"
        ;;
    "token")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress --check"
        valued="--profile"
        ;;
    "discover")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress --diff"
        valued="--profile"
        ;;
    "plan")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress --feed --until --reread --check --site --line --start --end --tz --interval --page-size --filter --estimate-from"
        valued="--profile --feed --until --reread --site --line --start --end --tz --interval --page-size --filter --estimate-from"
        ;;
    "pull")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress -o --output --format --site --line --start --end --tz --interval --page-size --filter --resume --restart --spool --as-read --skip-code"
        valued="--profile -o --output --format --site --line --start --end --tz --interval --page-size --filter --spool --skip-code"
        ;;
    "sync")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress --feed --until --reread --max-pages --wait --concurrency --deadline --skip-code --every --metrics"
        valued="--profile --feed --until --reread --max-pages --wait --concurrency --deadline --skip-code --every --metrics"
        ;;
    "coverage")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress --now"
        valued="--profile --now"
        ;;
    "lateness")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress"
        valued="--profile"
        ;;
    "changes")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress --since --start --end --tz --unread -o --output --format"
        valued="--profile --since --start --end --tz --unread -o --output --format"
        ;;
    "store")
        commands="check backup restore info"
        options="-h --help"
        valued=""
        ;;
    "store check")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress"
        valued="--profile"
        ;;
    "store backup")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress"
        valued="--profile"
        ;;
    "store restore")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress"
        valued="--profile"
        ;;
    "store info")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress"
        valued="--profile"
        ;;
    "allowance")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress"
        valued="--profile"
        ;;
    "agent")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress --listen --allow-uid --tls-cert --tls-key --client-ca --name"
        valued="--profile --listen --allow-uid --tls-cert --tls-key --client-ca --name"
        ;;
    "sandbox")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress --port --env-file --now --daily-allowance --seed --data --utc --bucket --site --line --machine --device --tag"
        valued="--profile --port --env-file --now --daily-allowance --seed --data --bucket --site --line --machine --device --tag"
        ;;
    "completion")
        commands=""
        options="-h --help --profile --json -v --verbose --no-progress"
        valued="--profile"
        ;;
    esac
}

_siteline_value() {
    case "$command $1" in
    "keygen --bits") _siteline_words '2048 3072 4096' ;;
    "keygen --passphrase-file") _siteline_paths -f ;;
    "keygen "1) _siteline_paths -f ;;
    "profile init --private-key-file") _siteline_paths -f ;;
    "profile init --certificate-file") _siteline_paths -f ;;
    "profile init --ledger") _siteline_paths -f ;;
    "profile init --ca-bundle") _siteline_paths -f ;;
    "doctor --enrolled-jwk") _siteline_paths -f ;;
    "doctor --store") _siteline_paths -f ;;
    "plan --estimate-from") _siteline_paths -f ;;
    "plan "2) _siteline_paths -f ;;
    "pull -o"|"pull --output") _siteline_paths -f ;;
    "pull --format") _siteline_words 'csv jsonl arrow parquet' ;;
    "pull --spool") _siteline_paths -f ;;
    "sync --metrics") _siteline_paths -f ;;
    "sync "2) _siteline_paths -f ;;
    "coverage "1) _siteline_paths -f ;;
    "lateness "1) _siteline_paths -f ;;
    "changes --unread") _siteline_words 'error warn keep' ;;
    "changes -o"|"changes --output") _siteline_paths -f ;;
    "changes --format") _siteline_words 'csv jsonl arrow parquet' ;;
    "changes "1) _siteline_paths -f ;;
    "store check "1) _siteline_paths -f ;;
    "store backup "1) _siteline_paths -f ;;
    "store restore "1) _siteline_paths -f ;;
    "store restore "2) _siteline_paths -f ;;
    "store info "1) _siteline_paths -f ;;
    "agent --tls-cert") _siteline_paths -f ;;
    "agent --tls-key") _siteline_paths -f ;;
    "agent --client-ca") _siteline_paths -f ;;
    "sandbox --env-file") _siteline_paths -f ;;
    "sandbox --data") _siteline_paths -f ;;
    "completion "1) _siteline_words 'bash zsh fish' ;;
    esac
}

_siteline() {
    local current=${COMP_WORDS[COMP_CWORD]} command="" option="" place=1 index word
    local commands options valued
    COMPREPLY=()
    _siteline_describe
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        if [[ $word == "=" ]]; then
            # bash splits --option=value there.
            continue
        elif [[ -n $option ]]; then
            option=""
        elif [[ $word == -* ]]; then
            if [[ " $valued " == *" $word "* ]]; then
                option=$word
            fi
        elif [[ " $commands " == *" $word "* ]]; then
            command=${command:+$command }$word
            _siteline_describe
        else
            place=$((place + 1))
        fi
    done
    if [[ $current == "=" ]]; then
        current=""
    fi
    if [[ -n $option ]]; then
        _siteline_value "$option"
    elif [[ $current == -* ]]; then
        _siteline_words "$options"
    elif [[ -n $commands ]]; then
        _siteline_words "$commands"
    else
        _siteline_value "$place"
    fi
}

complete -F _siteline siteline
