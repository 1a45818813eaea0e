# Figures: of each the section "common", then its own, once its data and variables are set (report_drawings.c).
# single: 1 in one column of a paper; experiment: its title.

## common
# A policy has one colour and one mark, by its number among policies; what is no policy has those of its place i.
colours = '#0072b2 #e69f00 #009e73 #cc79a7 #56b4e9 #d55e00 #8b949e'
marks = '6 4 8 12 3 1'
number(name) = sum [i = 1:words(policies)] (word(policies, i) eq name ? i : 0)
place(name, i) = number(name) ? number(name) : i
colour(n) = word(colours, 1 + (n - 1) % words(colours))
mark(n) = word(marks, 1 + (n - 1) % words(marks)) + 0
short(text, most) = strlen(text) > most ? text[1:most - 3].'...' : text
title(what) = short(experiment, single ? 34 : 80).': '.what
set datafile separator comma columnheaders missing NaN
set tics out nomirror
set border 3
set grid lc rgb '#d0d4d8'
set title font ',10'
size = largest >= 2**30 ? 2.0**30 : largest >= 2**20 ? 2.0**20 : 2.0**10
unit = largest >= 2**30 ? 'GiB' : largest >= 2**20 ? 'MiB' : 'KiB'

## memory
# $live: an index a run, of which every row is an op; phase: of the strip on top. most: bytes.
phase(i) = i == 0 ? 0xd5d9dd : i == 1 ? 0xcc79a7 : 0x8b949e
top = most / size
names = "activations saved 'activation gradients' scratch 'parameter gradients'"
shades = '#0072b2 #56b4e9 #e69f00 #999999 #009e73'
if (single) {
    set multiplot layout runs,1 margins 0.17, 0.95, 0.28, 0.88 spacing 0.14 title title('live memory')
} else {
    set multiplot layout 1,runs margins 0.09, 0.77, 0.17, 0.82 spacing 0.06 title title('live memory')
}
set xrange [0:ops]
set yrange [0:top * 1.12]
set ylabel 'live memory, '.unit
do for [i = 1:runs] {
    if (!single || i == runs) { set xlabel 'ops of one training step' }
    if (i < runs) {
        unset key
    } else {
        set key at screen (single ? 0.02 : 0.79), (single ? 0.13 : 0.80) left top Left reverse samplen 1 maxrows (single ? 4 : 9)
    }
    stats $live index i - 1 using ((sum [c = 1:categories] column(c)) / size) nooutput
    set title word(titles, i) offset 0, -0.4
    set arrow 1 from graph 0, first STATS_max to graph 1, first STATS_max nohead dt 2 lc rgb '#333333'
    plot for [c = categories:1:-1] $live index i - 1 using 0:((sum [k = 1:c] column(k)) / size) \
             with fillsteps fs solid noborder lc rgb word(shades, c) title word(names, c), \
         $live index i - 1 using 0:(top * 1.1):(column(0) < STATS_records - 1):(0):(phase(column('phase'))) with vectors nohead lw 8 lc rgb variable notitle, \
         keyentry with boxes fs solid lc rgb '#d5d9dd' title 'forward', \
         keyentry with boxes fs solid lc rgb '#cc79a7' title 'recompute', \
         keyentry with boxes fs solid lc rgb '#8b949e' title 'backward'
    if (!single) { unset ylabel }
}
unset multiplot

## choices
# $bound; $plans, of the policies in names; $own, those of the runs; $published, by label.
if (single) { set key below maxrows 4 samplen 1 } else { set key outside right }
set title title('time against memory')
set yrange [1:most]
set xlabel 'live peak, '.unit
set ylabel 'slowdown'
points = "$published using (column(1) / size):2:3 with labels left offset 0.7, 0 point ps 1.2 pt 2 lc rgb '#333333' title 'published'"
points = |$published| > 1 ? ', '.points : ''
plot $bound using (column(1) / size):2 with fsteps lw 2 lc rgb '#333333' title 'lower bound', \
     for [i = 1:words(names)] $plans using (strcol(3) eq word(names, i) ? column(1) / size : NaN):2 \
         with points ps 0.7 pt mark(place(word(names, i), i)) lc rgb colour(place(word(names, i), i)) title word(names, i), \
     $own using (column(1) / size):2 with points ps 1.7 pt 6 lw 2 lc rgb '#111111' title 'runs of this report' @points

## pair
# $losses: step, both losses, the difference; of: the policies of both.
set multiplot layout 2,1 title title('losses')
set lmargin single ? 10 : 12
if (single) { set key above samplen 2 } else { set key outside right }
set ylabel 'loss'
plot $losses using 1:2 with lines lw 5 lc rgb colour(place(word(of, 1), 1)) title word(names, 1), \
     '' using 1:3 with lines lw 1.5 lc rgb word(of, 1) eq word(of, 2) ? '#111111' : colour(place(word(of, 2), 2)) title word(names, 2)
set ylabel 'difference'
set xlabel 'step'
if (most == 0) { set yrange [-1:1] }
plot $losses using 1:4 with lines lc rgb '#333333' notitle
unset multiplot

## sweep
# $curves: its axis, live peak, slowdown, the curve's name; of: the policy of each, or -.
set multiplot layout (single ? 2 : 1),(single ? 1 : 2) title title('over '.names_of_axis)
set key top center outside horizontal
set xlabel names_of_axis
set ylabel 'live peak, '.unit
x(i) = strcol(4) eq word(names, i) ? column(1) : NaN
plot for [i = 1:words(names)] $curves using (x(i)):(column(2) / size) smooth unique with linespoints \
         pt mark(place(word(of, i), i)) lc rgb colour(place(word(of, i), i)) title word(names, i)
set ylabel 'slowdown'
plot for [i = 1:words(names)] $curves using (x(i)):3 smooth unique with linespoints \
         pt mark(place(word(of, i), i)) lc rgb colour(place(word(of, i), i)) title word(names, i)
unset multiplot
