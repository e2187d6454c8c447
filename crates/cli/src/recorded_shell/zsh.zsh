# The hooks of backstory for zsh. They make no process. In zsh, `-e` is no stat, which `-f` is. Each
# hook is one condition that holds: `setopt xtrace` prints it, and `setopt err_exit` ends nothing.
__backstory_preexec() {
    [[ ! -f "/dev/null/backstory/line/begin/${1:-$3}" ]]
}

# Zsh itself restores the status afterwards.
__backstory_precmd() {
    [[ ! -f /dev/null/backstory/line/end/$? ]]
}

# Called after the user's start-up files: other hooks run outside of the line.
__backstory_start() {
    # Start-up files may have set the path anew.
    if [[ -n ${BACKSTORY_REMOTE-} && :$PATH: != *":${BACKSTORY_REMOTE#*:}/lib/remote:"* ]]; then
        PATH=${BACKSTORY_REMOTE#*:}/lib/remote:$PATH
    fi
    typeset -ga preexec_functions precmd_functions
    preexec_functions+=(__backstory_preexec)
    precmd_functions=(__backstory_precmd $precmd_functions)
}
