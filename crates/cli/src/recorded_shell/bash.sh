# The hooks of backstory for bash, from 4.4 on. They make no process.
#
# PS0 is expanded between reading and executing a command line: it marks the beginning. The prompt
# command marks the end and passes the text, which bash has in its history. Messages go to the null
# device, whose spelling tells the supervisor where the line had ended (`set -x` would print them).
__backstory_number='\!'
__backstory_begin='${__backstory_never:+\D{/dev/null/backstory/line/begin}}'
__backstory_ps0= __backstory_control= __backstory_before= __backstory_last=

# The newest line of the history, and its number.
__backstory_newest() {
    local text=
    HISTTIMEFORMAT= \builtin history 1 >|"$__backstory_file"
    IFS= \builtin read -r -d '' text <"$__backstory_file"
    text=${text%$'\n'}
    text=${text#"${text%%[![:space:]]*}"}
    __backstory_at=${text%%[!0-9]*}
    __backstory_text=${text#*[0-9][* ] }
}

# Ends a line, and prepares the next. Argument: the line's status.
__backstory_prompt() {
    [[ -e /dev/null/backstory/line/hook/$1 ]]
    \builtin local - __backstory_at= __backstory_text= number
    \builtin set +eux +o noglob
    # While a line is read, the history takes every line. Bash would not tell why it ignores one.
    if [[ $__backstory_control ]]; then
        HISTCONTROL=$__backstory_control
    fi
    number=${__backstory_number@P}
    if [[ ! $__backstory_last ]]; then
        __backstory_newest
        __backstory_before=$__backstory_text
        __backstory_last=$number
    elif [[ ! -o history ]]; then
        [[ -e /dev/null/backstory/line/text/ ]]
    elif [[ $number == "$__backstory_last" ]]; then
        [[ -e /dev/null/backstory/line/private ]]
    else
        __backstory_newest
        [[ -e /dev/null/backstory/line/text/$__backstory_text ]]
        case $__backstory_control:$__backstory_text in
        *ignorespace*:' '* | *ignoreboth*:' '*) \builtin history -d "$__backstory_at" ;;
        *ignore[db][uo]*:"$__backstory_before") \builtin history -d "$__backstory_at" ;;
        *) __backstory_before=$__backstory_text ;;
        esac
        __backstory_last=${__backstory_number@P}
    fi
    PS0=${PS0%"$__backstory_ps0"}
    __backstory_ps0= __backstory_control=
    if \builtin shopt -q promptvars; then
        __backstory_ps0=$__backstory_begin
        case :$HISTCONTROL: in
        *:erasedups:*) ;;
        *:ignoredups:* | *:ignoreboth:*)
            __backstory_control=$HISTCONTROL
            __backstory_ps0+='${__backstory_control%%"${HISTCONTROL:=$__backstory_control}"}'
            HISTCONTROL=
            ;;
        esac
    fi
    PS0+=$__backstory_ps0
    \builtin return "$1"
}

# Called after the user's start-up files.
__backstory_start() {
    \builtin local hook
    hook='{ __backstory_prompt "$?" || :; } 2>/dev//null'
    if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
        PROMPT_COMMAND=("$hook" ${PROMPT_COMMAND[@]+"${PROMPT_COMMAND[@]}"})
    else
        hook=${hook/ || :/}
        PROMPT_COMMAND=$hook${PROMPT_COMMAND:+$'\n'$PROMPT_COMMAND}
    fi
}
