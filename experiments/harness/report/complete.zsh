#compdef rematch
# Completes rematch in zsh: made by rematch help --completion zsh
local -a found keys
local line word value
[[ ${words[CURRENT]} == *=* ]] && value=${words[CURRENT]%%=*}=
for line in ${(f)"$(${words[1]} child-complete "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
    word=${${line%%$'\t'*}#$value}
    [[ $word == *= ]] && keys+=("$word:${line#*$'\t'}") || found+=("$word:${line#*$'\t'}")
done
[[ -z $value ]] || compset -P '*='
_describe argument found || _describe key keys -S '' || _files
