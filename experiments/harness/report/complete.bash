# Completes rematch in bash: made by rematch help --completion bash
_rematch() {
    local line word=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS= read -r line; do
        [[ $line == "$word"* ]] && COMPREPLY+=("${line%%$'\t'*}")
    done < <("${COMP_WORDS[0]}" child-complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
}
complete -o default -F _rematch rematch
