# The hooks of backstory for bash, from 4.4 on. They make no process.
#
# PS0 is expanded between reading and executing a command line: it marks the beginning. The prompt
# command marks the end and passes the text, which bash has in its history. Messages go to the null
# device, whose spelling tells the supervisor where the line had ended (`set -x` would print them).
__backstory_begin='${__backstory_never:+\D{/dev/null/backstory/line/begin}}'
__backstory_restore='${__backstory_control%%"${HISTCONTROL:=$__backstory_control}"}'
__backstory_restore+='${__backstory_control%%"${__backstory_restored:=$__backstory_control}"}'
__backstory_ps0= __backstory_control= __backstory_restored=
__backstory_before= __backstory_last=none

# Reads the newest line of the history, and its number. Both are empty if the history is.
__backstory_newest() {
    local text=
    HISTTIMEFORMAT= \builtin history 1 >|"$__backstory_file"
    IFS= \builtin read -r -d '' text <"$__backstory_file"
    text=${text%$'\n'}
    text=${text#"${text%%[![:space:]]*}"}
    __backstory_at=${text%%[!0-9]*}
    __backstory_text=${text#*[0-9][* ] }
}

# Treats the newest line as the history does under a value of HISTCONTROL. Argument: the value.
__backstory_obey() {
    local ignored= users=${HISTCONTROL-unset}
    case :$1: in
    *:ignorespace:* | *:ignoreboth:*) [[ $__backstory_text != [[:blank:]]* ]] || ignored=1 ;;
    esac
    case :$1: in
    *:ignoredups:* | *:ignoreboth:*)
        [[ $__backstory_text != "$__backstory_before" ]] || ignored=1
        ;;
    esac
    case $ignored:$1: in
    1:*) \builtin history -d "$__backstory_at" ;;
    *:erasedups:*)
        HISTCONTROL=$1
        \builtin history -s -- "$__backstory_text"
        HISTCONTROL=$users
        [[ $users != unset ]] || \builtin unset -v HISTCONTROL
        ;;
    *) return ;;
    esac
    __backstory_newest
}

# Passes the text of the line that has just run, and treats the history as bash would have done.
__backstory_finish() {
    # While a line is read, the history takes every line. Bash would not tell why it ignores one.
    # PS0 restores the variable before the line runs, but is not expanded for an empty line.
    if [[ $__backstory_control && ! $__backstory_restored ]]; then
        HISTCONTROL=$__backstory_control
    fi
    __backstory_newest
    if [[ $__backstory_last == none ]]; then
        : # the first prompt
    elif [[ ! -o history ]]; then
        [[ ! -e /dev/null/backstory/line/text/ ]]
    elif [[ $__backstory_at:$__backstory_text == "$__backstory_last:$__backstory_before" ]]; then
        [[ ! -e /dev/null/backstory/line/private ]]
    else
        [[ ! -e /dev/null/backstory/line/text/$__backstory_text ]]
        __backstory_obey "$__backstory_control"
    fi
    __backstory_last=$__backstory_at
    __backstory_before=$__backstory_text
}

# Ends a line, and prepares the next. Argument: the line's status.
__backstory_prompt() {
    [[ ! -e /dev/null/backstory/line/hook/$1 ]]
    \builtin local - __backstory_at= __backstory_text=
    \builtin set +eux +o noglob
    __backstory_finish
    PS0=${PS0%"$__backstory_ps0"}
    __backstory_ps0= __backstory_control= __backstory_restored=
    if \builtin shopt -q promptvars; then
        __backstory_ps0=$__backstory_begin
        case :$HISTCONTROL: in
        *:ignoredups:* | *:ignoreboth:* | *:erasedups:*)
            __backstory_control=$HISTCONTROL
            __backstory_ps0+=$__backstory_restore
            HISTCONTROL=
            ;;
        esac
    fi
    PS0+=$__backstory_ps0
    \builtin return "$1"
}

# The last line of the shell gets its text, too.
__backstory_exit() {
    \builtin local - __backstory_at= __backstory_text=
    \builtin set +eux +o noglob
    __backstory_finish
}

# Called after the user's start-up files.
__backstory_start() {
    # Start-up files may have set the path anew.
    if [[ ${BACKSTORY_REMOTE-} && :$PATH: != *":${BACKSTORY_REMOTE#*:}/lib/remote:"* ]]; then
        PATH=${BACKSTORY_REMOTE#*:}/lib/remote:$PATH
    fi
    \builtin local hook traps=
    hook='{ __backstory_prompt "$?" || :; } >/dev//null 2>&1'
    if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
        PROMPT_COMMAND=("$hook" ${PROMPT_COMMAND[@]+"${PROMPT_COMMAND[@]}"})
    else
        hook=${hook/ || :/}
        PROMPT_COMMAND=$hook${PROMPT_COMMAND:+$'\n'$PROMPT_COMMAND}
    fi
    \builtin trap -p EXIT >|"$__backstory_file"
    IFS= \builtin read -r -d '' traps <"$__backstory_file"
    if [[ ! $traps ]]; then
        \builtin trap '{ __backstory_exit; } >/dev//null 2>&1' EXIT
    fi
}
