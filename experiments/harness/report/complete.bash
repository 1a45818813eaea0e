# Completes rematch in bash: made by rematch help --completion bash
# bash breaks words at = and : too (COMP_WORDBREAKS). The program gets them whole, as it will when the line is run; what
# follows the last break alone is replaced.
_rematch() {
    local line piece after left=${COMP_LINE:0:COMP_POINT} words=()
    for piece in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        after=${left#"${left%%[![:space:]]*}"}
        if [[ $after == "$left" && ${#words[@]} -gt 0 ]]; then words[-1]+=$piece; else words+=("$piece"); fi
        left=${after#"$piece"}
    done
    [[ $piece != [=:]* ]] || piece=
    COMPREPLY=()
    while IFS= read -r line; do
        line=${line%%$'\t'*}
        [[ $line != "${words[-1]}"* ]] || COMPREPLY+=("${line#"${words[-1]%"$piece"}"}")
    done < <("${words[0]}" child-complete "${words[@]:1}" 2>/dev/null)
    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
}
complete -o default -F _rematch rematch
