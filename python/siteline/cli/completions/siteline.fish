# Completion of siteline for fish. Made from its parser: python -m siteline.cli.completions --write

set -g __siteline_commands ' keygen' ' profile' ' profile init' ' profile list' ' profile show' ' token' ' discover' ' allowance' ' completion'
set -g __siteline_valued --allowance-resets --application --assertion-lifetime --audience --base-url --bits --ca-bundle --certificate-file --client-id --clock-tolerance --connect-timeout --daily-allowance --idle-timeout --kid --ledger --max-body-bytes --max-connections --max-retry-after --passphrase-file --password-command --private-key-file --profile --proxy --response-timeout --scopes --settle-lag --subject --tries

function __siteline_at --description 'Whether the words so far are of this command'
    set -l command
    set -l is_value 0
    set -l words (commandline -opc)
    set -e words[1]
    for word in $words
        if test $is_value = 1
            set is_value 0
        else if contains -- $word $__siteline_valued
            set is_value 1
        else if contains -- "$command $word" $__siteline_commands
            set command "$command $word"
        end
    end
    test "$command" = "$argv[1]"
end

complete -c siteline -f

complete -c siteline -n '__siteline_at \'\'' -a keygen -d 'make a key, and print its public half for the enrollment'
complete -c siteline -n '__siteline_at \'\'' -a profile -d 'make and show the profiles of the configuration file'
complete -c siteline -n '__siteline_at \'\'' -a token -d 'check that a token can be had, and that the service takes it'
complete -c siteline -n '__siteline_at \'\'' -a discover -d 'list what may be read'
complete -c siteline -n '__siteline_at \'\'' -a allowance -d 'show the daily allowance as the ledger has counted it'
complete -c siteline -n '__siteline_at \'\'' -a completion -d 'print what completes this command in a shell'
complete -c siteline -n '__siteline_at \'\'' -s h -l help -d 'show this help message and exit'
complete -c siteline -n '__siteline_at \'\'' -l version -d 'show program\'s version number and exit'
complete -c siteline -n '__siteline_at \' keygen\'' -s h -l help -d 'show this help message and exit'
complete -c siteline -n '__siteline_at \' keygen\'' -l profile -x -d 'a profile of the configuration file; without it the SITELINE_* variables'
complete -c siteline -n '__siteline_at \' keygen\'' -l json -d 'one JSON document on stdout'
complete -c siteline -n '__siteline_at \' keygen\'' -s v -l verbose -d 'log to stderr what is done; twice: every request'
complete -c siteline -n '__siteline_at \' keygen\'' -l no-progress -d 'show no progress'
complete -c siteline -n '__siteline_at \' keygen\'' -l bits -x -a '2048 3072 4096' -d 'the size of the RSA key (3072)'
complete -c siteline -n '__siteline_at \' keygen\'' -l overwrite -d 'replace an existing file: an enrolled key that is lost cannot be recovered'
complete -c siteline -n '__siteline_at \' keygen\'' -l encrypt -d 'ask for it on the terminal, twice'
complete -c siteline -n '__siteline_at \' keygen\'' -l passphrase-file -r -F -d 'its first line; - is standard input'
complete -c siteline -n '__siteline_at \' keygen\'' -l password-command -x -d 'the first line that this command prints, as in a profile'
complete -c siteline -n '__siteline_at \' keygen\'' -F
complete -c siteline -n '__siteline_at \' profile\'' -a init -d 'append a profile to the file'
complete -c siteline -n '__siteline_at \' profile\'' -a list -d 'list the profiles'
complete -c siteline -n '__siteline_at \' profile\'' -a show -d 'show the members of a profile'
complete -c siteline -n '__siteline_at \' profile\'' -s h -l help -d 'show this help message and exit'
complete -c siteline -n '__siteline_at \' profile init\'' -s h -l help -d 'show this help message and exit'
complete -c siteline -n '__siteline_at \' profile init\'' -l profile -x -d 'a profile of the configuration file; without it the SITELINE_* variables'
complete -c siteline -n '__siteline_at \' profile init\'' -l json -d 'one JSON document on stdout'
complete -c siteline -n '__siteline_at \' profile init\'' -s v -l verbose -d 'log to stderr what is done; twice: every request'
complete -c siteline -n '__siteline_at \' profile init\'' -l no-progress -d 'show no progress'
complete -c siteline -n '__siteline_at \' profile init\'' -l base-url -x -d 'the address of the service'
complete -c siteline -n '__siteline_at \' profile init\'' -l subject -x -d 'the subject that the enrollment returned'
complete -c siteline -n '__siteline_at \' profile init\'' -l private-key-file -r -F -d 'the private key; it need not be there yet'
complete -c siteline -n '__siteline_at \' profile init\'' -l password-command -x -d 'a command that prints the passphrase in its first line'
complete -c siteline -n '__siteline_at \' profile init\'' -l kid -x -d 'the thumbprint that the key must have'
complete -c siteline -n '__siteline_at \' profile init\'' -l certificate-file -r -F -d 'a client certificate, in the place of the subject (§5.6)'
complete -c siteline -n '__siteline_at \' profile init\'' -l client-id -x -d 'the client_id of token requests with that certificate'
complete -c siteline -n '__siteline_at \' profile init\'' -l strict -d 'refuse a key file that other users can read'
complete -c siteline -n '__siteline_at \' profile init\'' -l scopes -x -d 'the scopes to ask for, in one argument, with blanks between'
complete -c siteline -n '__siteline_at \' profile init\'' -l audience -x -d 'the aud of assertions, where it is another than usual'
complete -c siteline -n '__siteline_at \' profile init\'' -l daily-allowance -x -d 'the data requests of a day'
complete -c siteline -n '__siteline_at \' profile init\'' -l allowance-resets -x -d 'when the day begins, as 06:00Z'
complete -c siteline -n '__siteline_at \' profile init\'' -l ledger -r -F -d 'the file that counts requests, or memory'
complete -c siteline -n '__siteline_at \' profile init\'' -l settle-lag -x -d 'how far behind now a read without an end stops'
complete -c siteline -n '__siteline_at \' profile init\'' -l assertion-lifetime -x -d 'the lifetime of assertions (§2.1)'
complete -c siteline -n '__siteline_at \' profile init\'' -l clock-tolerance -x -d 'how far back their nbf is set'
complete -c siteline -n '__siteline_at \' profile init\'' -l typ -d 'write typ into the header of assertions'
complete -c siteline -n '__siteline_at \' profile init\'' -l max-retry-after -x -d 'the longest pause that is waited for'
complete -c siteline -n '__siteline_at \' profile init\'' -l tries -x -d 'the attempts of a request'
complete -c siteline -n '__siteline_at \' profile init\'' -l connect-timeout -x -d 'the time limit of a connection'
complete -c siteline -n '__siteline_at \' profile init\'' -l response-timeout -x -d 'that of a reply'
complete -c siteline -n '__siteline_at \' profile init\'' -l idle-timeout -x -d 'that of a pause within a reply'
complete -c siteline -n '__siteline_at \' profile init\'' -l max-connections -x -d 'the connections at a time'
complete -c siteline -n '__siteline_at \' profile init\'' -l max-body-bytes -x -d 'the longest reply, decoded'
complete -c siteline -n '__siteline_at \' profile init\'' -l application -x -d 'what the User-Agent says besides'
complete -c siteline -n '__siteline_at \' profile init\'' -l allow-http -d 'allow a service without TLS that is not on loopback'
complete -c siteline -n '__siteline_at \' profile init\'' -l ca-bundle -r -F -d 'the certificates to trust, as PEM'
complete -c siteline -n '__siteline_at \' profile init\'' -l proxy -x -d 'the proxy; write one with a password into the file yourself'
complete -c siteline -n '__siteline_at \' profile list\'' -s h -l help -d 'show this help message and exit'
complete -c siteline -n '__siteline_at \' profile list\'' -l profile -x -d 'a profile of the configuration file; without it the SITELINE_* variables'
complete -c siteline -n '__siteline_at \' profile list\'' -l json -d 'one JSON document on stdout'
complete -c siteline -n '__siteline_at \' profile list\'' -s v -l verbose -d 'log to stderr what is done; twice: every request'
complete -c siteline -n '__siteline_at \' profile list\'' -l no-progress -d 'show no progress'
complete -c siteline -n '__siteline_at \' profile show\'' -s h -l help -d 'show this help message and exit'
complete -c siteline -n '__siteline_at \' profile show\'' -l profile -x -d 'a profile of the configuration file; without it the SITELINE_* variables'
complete -c siteline -n '__siteline_at \' profile show\'' -l json -d 'one JSON document on stdout'
complete -c siteline -n '__siteline_at \' profile show\'' -s v -l verbose -d 'log to stderr what is done; twice: every request'
complete -c siteline -n '__siteline_at \' profile show\'' -l no-progress -d 'show no progress'
complete -c siteline -n '__siteline_at \' token\'' -s h -l help -d 'show this help message and exit'
complete -c siteline -n '__siteline_at \' token\'' -l profile -x -d 'a profile of the configuration file; without it the SITELINE_* variables'
complete -c siteline -n '__siteline_at \' token\'' -l json -d 'one JSON document on stdout'
complete -c siteline -n '__siteline_at \' token\'' -s v -l verbose -d 'log to stderr what is done; twice: every request'
complete -c siteline -n '__siteline_at \' token\'' -l no-progress -d 'show no progress'
complete -c siteline -n '__siteline_at \' token\'' -l check -d 'required: there is nothing else to do with a token'
complete -c siteline -n '__siteline_at \' discover\'' -s h -l help -d 'show this help message and exit'
complete -c siteline -n '__siteline_at \' discover\'' -l profile -x -d 'a profile of the configuration file; without it the SITELINE_* variables'
complete -c siteline -n '__siteline_at \' discover\'' -l json -d 'one JSON document on stdout'
complete -c siteline -n '__siteline_at \' discover\'' -s v -l verbose -d 'log to stderr what is done; twice: every request'
complete -c siteline -n '__siteline_at \' discover\'' -l no-progress -d 'show no progress'
complete -c siteline -n '__siteline_at \' discover\'' -l diff -d 'tell what has come, gone or changed since the last run, with or without --diff'
complete -c siteline -n '__siteline_at \' allowance\'' -s h -l help -d 'show this help message and exit'
complete -c siteline -n '__siteline_at \' allowance\'' -l profile -x -d 'a profile of the configuration file; without it the SITELINE_* variables'
complete -c siteline -n '__siteline_at \' allowance\'' -l json -d 'one JSON document on stdout'
complete -c siteline -n '__siteline_at \' allowance\'' -s v -l verbose -d 'log to stderr what is done; twice: every request'
complete -c siteline -n '__siteline_at \' allowance\'' -l no-progress -d 'show no progress'
complete -c siteline -n '__siteline_at \' completion\'' -s h -l help -d 'show this help message and exit'
complete -c siteline -n '__siteline_at \' completion\'' -l profile -x -d 'a profile of the configuration file; without it the SITELINE_* variables'
complete -c siteline -n '__siteline_at \' completion\'' -l json -d 'one JSON document on stdout'
complete -c siteline -n '__siteline_at \' completion\'' -s v -l verbose -d 'log to stderr what is done; twice: every request'
complete -c siteline -n '__siteline_at \' completion\'' -l no-progress -d 'show no progress'
complete -c siteline -n '__siteline_at \' completion\'' -a 'bash zsh fish'
