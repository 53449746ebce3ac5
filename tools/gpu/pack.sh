#!/usr/bin/env bash
# Packs what a machine with a GPU needs to test and measure: programs, plans, and the CPU's results.
# That machine needs NVIDIA's driver and CUDA 13's cuBLASLt; PyTorch and JAX for the comparison.
# Usage: tools/gpu/pack.sh [BUILD]    writes BUILD/gpu.tar.xz; there: tar xf gpu.tar.xz && gpu/run.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:-build/dev}
out=$build/gpu
rm -rf "$out" "$build/gpu.tar.xz"
mkdir -p "$out"/{bin,lib,test,bench,attention,stream,text}
cp tools/gpu/{run.sh,table.py,lm_rows.py,jax_lm.py,torch_lm.py,torch_attention.py,torch_stream.py,torch_text.py} "$out"
cp -r tools/gpu/shapes "$out/text/"
for program in hydra-run compare-tensors; do
  strip -o "$out/bin/$program" "$build/bin/$program"
done
# The libraries that hydra-run was linked with, but for those of every Linux.
ldd "$build/bin/hydra-run" | awk '$2 == "=>" && $1 !~ /^lib(c|m|stdc\+\+|gcc_s)\./ { print $3 }' |
  xargs -I{} cp -L {} "$out/lib/"

compile() { "$build/bin/hydrac" "$@"; }
# One call of every small model on the GPU, and what the CPU says.
for model in cs336 llama gpt2; do
  for precision in fp32 tf32 bf16 f16 pure_bf16; do
    flags=(models/$model.mlir --preset=tiny --batch=2 --seq=32 --mode=grad --precision=$precision)
    compile "${flags[@]}" --target=h200 -o "$out/test/$model-$precision.fb"
    compile "${flags[@]}" -o "$out/cpu.fb"
    "$build/bin/hydra-run" "$out/cpu.fb" --seed 4 --outputs "$out/test/$model-$precision.safetensors" >/dev/null 2>&1
  done
done
# A few rows, which matmuls compute for themselves: one, that warps share; as many as do not divide them up; more than a
# block has warps; and rows that are longer than the block's turns. Rows that the device counts.
while read -r name flags; do
  flags="$flags --batch=1 --mode=forward --precision=bf16"
  compile $flags --target=h200 -o "$out/test/$name-bf16.fb"
  compile $flags -o "$out/cpu.fb"
  "$build/bin/hydra-run" "$out/cpu.fb" --seed 4 --outputs "$out/test/$name-bf16.safetensors" > /dev/null 2>&1
done << 'FEW'
few-one models/llama.mlir --preset=tiny --seq=1
few-three models/llama.mlir --preset=tiny --seq=3
few-many models/llama.mlir --preset=tiny --seq=16
counted-short test/gpu/Inputs/counted.mlir --preset=short --seq=333
counted-warp test/gpu/Inputs/counted.mlir --preset=warp --seq=333
counted-block test/gpu/Inputs/counted.mlir --preset=block --seq=333
few-long models/llama.mlir --preset=tiny --set D=1024,H=8,Hk=2,F=2000 --seq=3
few-gelu models/gpt2.mlir --preset=tiny --seq=3
FEW
# Counted rows that blocks have in turn: as if the GPU had one multiprocessor.
sed 's/"multiprocessors": [0-9]*/"multiprocessors": 1/; s/"name": "h200",/"name": "one-multiprocessor",/' \
  compiler/targets/h200.json > "$out/one-multiprocessor.json"
for preset in short warp block; do
  compile test/gpu/Inputs/counted.mlir --preset=$preset --seq=333 --batch=1 --mode=forward --precision=bf16 \
    --target="$out/one-multiprocessor.json" -o "$out/test/counted-$preset-turns-bf16.fb"
  cp "$out/test/counted-$preset-bf16.safetensors" "$out/test/counted-$preset-turns-bf16.safetensors"
done
rm "$out/one-multiprocessor.json"
# Grouped queries over several tiles, the last of them partial; attention written out, and in all forms, with blocks
# of one to three warpgroups or of tiles, and under caps; weights and keys that are dropped; recurrences in several
# segments, with more states than a warp has lanes; a table of many rows.
declare -A cases=(
  [tiles]="models/llama.mlir --preset=tiny --set D=256,H=4,Hk=2 --batch=4 --seq=300 --precision=bf16"
  [wide]="models/llama.mlir --preset=tiny --set D=256,H=2,Hk=1 --batch=2 --seq=100 --precision=bf16"
  [odd]="models/llama.mlir --preset=tiny --set D=60,H=3,Hk=1,F=100 --batch=3 --seq=37 --precision=bf16"
  [naive]="models/cs336.mlir --preset=tiny --batch=2 --seq=32 --attention=naive --precision=bf16"
  [single]="models/cs336.mlir --preset=tiny --batch=2 --seq=32 -O0 --precision=bf16"
  [forms-narrow]="test/gpu/Inputs/attention.mlir --preset=narrow --batch=2 --seq=200 --precision=bf16"
  [forms-heads]="test/gpu/Inputs/attention.mlir --preset=heads --batch=2 --seq=200 --precision=bf16"
  [forms-wide]="test/gpu/Inputs/attention.mlir --preset=wide --batch=2 --seq=333 --precision=bf16"
  [forms-odd]="test/gpu/Inputs/attention.mlir --preset=odd --batch=2 --seq=100 --precision=bf16"
  [forms-many64]="test/gpu/Inputs/attention.mlir --preset=heads --batch=16 --seq=650 --precision=bf16"
  [forms-many80]="test/gpu/Inputs/attention.mlir --preset=eighty --batch=16 --seq=650 --precision=bf16"
  [forms-many128]="test/gpu/Inputs/attention.mlir --preset=wide --batch=16 --seq=300 --precision=bf16"
  [forms-heads-f16]="test/gpu/Inputs/attention.mlir --preset=heads --set gain=4096 --batch=2 --seq=200 --precision=f16"
  [forms-many64-f16]="test/gpu/Inputs/attention.mlir --preset=heads --set gain=4096 --batch=16 --seq=650 --precision=f16"
  [forms-many128-f16]="test/gpu/Inputs/attention.mlir --preset=wide --set gain=4096 --batch=16 --seq=300 --precision=f16"
  [forms-odd-f16]="test/gpu/Inputs/attention.mlir --preset=odd --set gain=4096 --batch=2 --seq=100 --precision=f16"
  [forms-96]="test/gpu/Inputs/attention.mlir --preset=ninety_six --batch=2 --seq=333 --precision=bf16"
  [forms-many96]="test/gpu/Inputs/attention.mlir --preset=ninety_six --batch=16 --seq=300 --precision=bf16"
  [forms-256]="test/gpu/Inputs/attention.mlir --preset=widest --batch=2 --seq=333 --precision=bf16"
  [forms-many256]="test/gpu/Inputs/attention.mlir --preset=widest --batch=16 --seq=300 --precision=bf16"
  [forms-256-f16]="test/gpu/Inputs/attention.mlir --preset=widest --set gain=4096 --batch=2 --seq=200 --precision=f16"
  [forms-256-f32]="test/gpu/Inputs/attention.mlir --preset=widest --batch=1 --seq=100"
  [rotations-narrow]="test/gpu/Inputs/rotations.mlir --preset=narrow --batch=2 --seq=200 --precision=bf16"
  [rotations-heads]="test/gpu/Inputs/rotations.mlir --preset=heads --batch=2 --seq=333 --precision=bf16"
  [rotations-eighty]="test/gpu/Inputs/rotations.mlir --preset=eighty --batch=2 --seq=200 --precision=bf16"
  [rotations-wide]="test/gpu/Inputs/rotations.mlir --preset=wide --batch=2 --seq=333 --precision=bf16"
  [rotations-many64]="test/gpu/Inputs/rotations.mlir --preset=heads --batch=16 --seq=650 --precision=bf16"
  [rotations-many128]="test/gpu/Inputs/rotations.mlir --preset=wide --batch=16 --seq=300 --precision=bf16"
  [rotations-heads-f16]="test/gpu/Inputs/rotations.mlir --preset=heads --set gain=4096 --batch=2 --seq=200 --precision=f16"
  [gemma2]="test/tools/hydra-import/Inputs/gemma2.mlir --preset=gemma2 --set D=256,hd=256,H=2,Hk=1,W=40 --batch=2 --seq=100 --precision=bf16"
  [layers]="models/llama.mlir --preset=tiny --set D=256,H=4,Hk=2 --batch=4 --seq=100 --precision=bf16 --layer-precision=*.down:fp32,*.wo:tf32"
  [odd-f16]="models/llama.mlir --preset=tiny --set D=60,H=3,Hk=1,F=100 --batch=3 --seq=37 --precision=f16"
  [cs336-fp8]="models/cs336.mlir --preset=tiny --set L=1 --batch=2 --seq=32 --precision=fp8 --fp8-keep=none"
  [gpt2-fp8]="models/gpt2.mlir --preset=tiny --set L=1 --batch=2 --seq=32 --precision=fp8 --fp8-keep=none"
  [tiles-fp8]="models/llama.mlir --preset=tiny --set D=256,H=4,Hk=2,L=1 --batch=4 --seq=304 --precision=fp8 --fp8-format=e4m3 --fp8-keep=none"
  [rows-fp8]="models/llama.mlir --preset=tiny --set D=256,H=4,Hk=2,L=1 --batch=4 --seq=304 --precision=fp8 --fp8-format=e4m3 --fp8-keep=none --fp8-scaling=row"
  [blocks-fp8]="models/llama.mlir --preset=tiny --set D=256,H=4,Hk=2,F=384,L=1 --batch=4 --seq=320 --precision=fp8 --fp8-format=e4m3 --fp8-keep=none --fp8-scaling=block128"
  [blocks-parts-fp8]="models/llama.mlir --preset=tiny --set D=320,H=5,Hk=5,F=208,L=1 --batch=4 --seq=300 --precision=fp8 --fp8-keep=none --fp8-scaling=block128"
  [e4m3-fp8]="models/llama.mlir --preset=tiny --set L=3 --batch=2 --seq=64 --precision=fp8 --fp8-format=e4m3"
  [drops]="models/gpt2.mlir --preset=tiny --set dropout=0.1,attention_dropout=0.2,P=300 --batch=2 --seq=300 --precision=bf16"
  [drops-f32]="test/tools/hydra-run/Inputs/dropout-attention.mlir --set part=0.2,keys=0.3 --batch=3 --seq=45"
  [drops-keys]="models/megalodon.mlir --preset=tiny --set attention_dropout=0.1,dropkey=0.4 --batch=2 --seq=100 --precision=bf16"
  [recurrence]="models/megalodon.mlir --preset=tiny --set N=16 --batch=3 --seq=500"
  [recurrence-documents]="models/megalodon.mlir --preset=tiny --set packed=true,N=40 --batch=2 --seq=300 --precision=bf16"
  [table]="models/cs336.mlir --preset=tiny --set V=30000,D=64,H=4 --batch=8 --seq=600 --precision=bf16"
)
for name in "${!cases[@]}"; do
  read -ra flags <<< "${cases[$name]}"
  compile "${flags[@]}" --mode=grad --target=h200 -o "$out/test/$name.fb"
  compile "${flags[@]}" --mode=grad -o "$out/cpu.fb"
  "$build/bin/hydra-run" "$out/cpu.fb" --seed 4 --outputs "$out/test/$name.safetensors" >/dev/null 2>&1
done
# The same with launches of their own for rotations of gradients.
for name in "${!cases[@]}"; do
  [[ $name == rotations-* ]] || continue
  read -ra flags <<< "${cases[$name]}"
  compile "${flags[@]}" --mode=grad --target=h200 --disable-pass=hydra-fuse-rotations -o "$out/test/$name-apart.plan"
  compile "${flags[@]}" --mode=grad --target=h200 --compile-to=plan | grep 'rotation<' > /dev/null ||
    { echo "$name: nothing was fused" >&2; exit 1; }
done
# Attention with other tiles than it chooses, by warpgroups and, as if the GPU had none, by tiles; what it computes is the
# same.
sed 's/"wgmma", //; s/"name": "h200",/"name": "no-wgmma",/' compiler/targets/h200.json > "$out/no-wgmma.json"
while read -r base name target forward queries keys; do
  read -ra flags <<< "${cases[$base]}"
  compile "${flags[@]}" --mode=grad --target="$target" --kernel-tiles=attention_forward:"$forward" \
    --kernel-tiles=attention_query_gradients:"$queries" --kernel-tiles=attention_key_gradients:"$keys" -o "$out/test/$base-$name.fb"
  cp "$out/test/$base.safetensors" "$out/test/$base-$name.safetensors"
done << TILES
forms-many64 one h200 rows=64,tile=64,stages=2 rows=64,stages=2 rows=64,stages=2
forms-many64 two h200 rows=128,tile=64,stages=8 rows=128,stages=5 rows=128,stages=6
forms-many64 three h200 rows=192,tile=64,stages=3 rows=192,stages=3 rows=128,stages=3
forms-many128 one h200 rows=64,tile=64,stages=4 rows=64,stages=2 rows=64,stages=5
forms-many128 two h200 rows=128,tile=64,stages=2 rows=128,stages=2 rows=128,stages=2
forms-many64 one-turns h200 rows=64,tile=128,stages=6 rows=64 rows=64
forms-many64 two-turns h200 rows=128,tile=128,stages=4 rows=64 rows=64
forms-many64 three-turns h200 rows=192,tile=128,stages=2 rows=64 rows=64
forms-many128 one-turns h200 rows=64,tile=128,stages=3 rows=64 rows=64
forms-many128 two-turns h200 rows=128,tile=128,stages=2 rows=64 rows=64
forms-many64 tiles $out/no-wgmma.json rows=64,tile=64 rows=64,tile=64 rows=64,tile=64
forms-many64 wide-tiles $out/no-wgmma.json rows=128,tile=32 rows=128,tile=64 rows=128,tile=32
forms-96 wide-tiles $out/no-wgmma.json rows=128,tile=64 rows=128,tile=32 rows=64,tile=32
TILES
rm "$out/no-wgmma.json"
# Generated kernels with other threads.
for sizes in threads=32,long_threads=1024 threads=1024,long_threads=64; do
  read -ra flags <<< "${cases[table]}"
  compile "${flags[@]}" --mode=grad --target=h200 --kernel-tiles=row_kernels:$sizes -o "$out/test/table-${sizes%%,*}.fb"
  cp "$out/test/table.safetensors" "$out/test/table-${sizes%%,*}.safetensors"
done
# The other families. Who is routed where is compared in f32 only: rounding may change whom a router picks.
while read -r name precisions flags; do
  for precision in ${precisions//,/ }; do
    compile $flags --mode=grad --precision=$precision --target=h200 -o "$out/test/$name-$precision.fb"
    compile $flags --mode=grad --precision=$precision -o "$out/cpu.fb"
    "$build/bin/hydra-run" "$out/cpu.fb" --seed 4 --outputs "$out/test/$name-$precision.safetensors" >/dev/null 2>&1
  done
done << 'FAMILIES'
ttt fp32,bf16 models/ttt.mlir --preset=ref --batch=2 --seq=40
ttt-loops fp32,tf32,bf16,f16 models/ttt.mlir --preset=ref --batch=2 --seq=160
ttt-wide-loops fp32,bf16 models/ttt.mlir --preset=ref --set D=256,H=2,L=1 --batch=3 --seq=167
ttt-launches fp32 models/ttt.mlir --preset=ref --batch=2 --seq=160 --disable-pass=hydra-fuse-loops
ttt-nested fp32,bf16 models/ttt.mlir --preset=ref --batch=1 --seq=160 --scan-checkpoint=5
megalodon fp32,tf32,bf16,f16 models/megalodon.mlir --preset=ref --batch=2 --seq=40
megalodon-recurrence fp32 models/megalodon.mlir --preset=ref --set ema=sequential --batch=2 --seq=40
megalodon-fft fp32,bf16 models/megalodon.mlir --preset=ref --set ema=fft --batch=2 --seq=40
megalodon-packed fp32,bf16 models/megalodon.mlir --preset=ref --set packed=true --set V=7 --batch=2 --seq=40
hydra-fixed fp32,bf16,f16 models/hydra.mlir --preset=ref --set mor=fixed,mod=dense --batch=2 --seq=32
hydra-dynamic fp32 models/hydra.mlir --preset=ref --batch=2 --seq=32
hydra-static fp32,bf16 models/hydra.mlir --preset=ref --set mor=static,mod=static --batch=2 --seq=32
hydra-counts fp32 models/hydra.mlir --preset=ref --batch=4 --seq=160
hydra-blend fp32 models/hydra.mlir --preset=ref --set blend=true --set loss_aware=0.3 --batch=2 --seq=32 --scalar s=0.3 --scalar warm=0.4
gate fp32,bf16,f16 test/tools/hydrac/Inputs/gate.mlir --batch=4 --seq=160
counting fp32 test/gpu/Inputs/counting.mlir --batch=5 --seq=333
experts-tiles fp32,tf32,bf16,f16 test/gpu/Inputs/experts.mlir --preset=tiles --batch=4 --seq=300
experts-many fp32,bf16 test/gpu/Inputs/experts.mlir --preset=many --batch=3 --seq=167
experts-few bf16 test/gpu/Inputs/experts.mlir --preset=many --batch=1 --seq=5
experts-odd fp32,tf32,bf16,f16 test/gpu/Inputs/experts.mlir --preset=odd --batch=3 --seq=37
experts-one bf16 test/gpu/Inputs/experts.mlir --preset=one --batch=2 --seq=200
experts-all bf16 test/gpu/Inputs/experts.mlir --preset=all --batch=2 --seq=333
experts-long bf16,f16 test/gpu/Inputs/experts.mlir --preset=long --batch=2 --seq=160
experts-narrow fp32,bf16 test/gpu/Inputs/experts.mlir --preset=tiles --set narrow=true --batch=4 --seq=300
FAMILIES
# Rows that kernels count, or that a switch chooses by: none of them, some, all.
mkdir -p "$out/test/gate"
python3 test/tools/hydrac/Inputs/gate-inputs.py "$out/test/gate"
for precision in fp32 bf16; do
  flags=(test/tools/hydrac/Inputs/gate.mlir --mode=grad --batch=2 --seq=96 --precision=$precision)
  compile "${flags[@]}" --target=h200 -o "$out/test/gate/$precision.plan"
  compile "${flags[@]}" -o "$out/cpu.fb"
  for kept in none some all; do
    "$build/bin/hydra-run" "$out/cpu.fb" --inputs "$out/test/gate/$kept.safetensors" \
      --outputs "$out/test/gate/$kept-$precision.safetensors" > /dev/null 2>&1
  done
done
rm "$out/cpu.fb"
compile models/llama.mlir --preset=bytes --batch=8 --seq=256 --precision=bf16 --target=h200 -o "$out/test/train.plan"
compile models/llama.mlir --preset=bytes --batch=8 --seq=256 --precision=bf16 --target=h200 \
  --disable-pass=hydra-batch-launches -o "$out/test/single-launches.plan"
compile models/megalodon.mlir --preset=bytes --batch=8 --seq=128 --target=h200 \
  --disable-pass=hydra-batch-launches,hydra-batch-copies -o "$out/test/single-copies.plan"
compile models/llama.mlir --preset=bytes --batch=8 --seq=256 --precision=bf16 --target=h200 --offload=optimizer \
  -o "$out/test/offload.plan"
cp data/tinyshakespeare.txt "$out/test/text"
# AdamW where gradients are summed: as if the GPU had two multiprocessors, so that small matrices have several tiles a block,
# and slow memory, so that small matrices gain by it.
# Tiles, pieces and steps of sums that do not divide them; fewer sums than a step; rows of several parameters; of 8 bits, with
# the largest magnitudes of blocks and of rows. What the CPU trains; and the same plan with updates apart.
mkdir -p "$out/test/updates"
sed 's/"multiprocessors": 132/"multiprocessors": 2/; s/"name": "h200",/"name": "two-blocks",/
  s/"memory_bandwidth": [0-9.e]*/"memory_bandwidth": 1e9/' compiler/targets/h200.json > "$out/two-blocks.json"
while read -r name flags; do
  flags="models/llama.mlir --preset=bytes $flags --no-clip --batch-filter"
  compile $flags --target="$out/two-blocks.json" -o "$out/test/updates/$name.plan"
  compile $flags --target="$out/two-blocks.json" --disable-pass=hydra-fuse-updates -o "$out/test/updates/$name-apart.plan"
  cmp -s "$out/test/updates/$name.plan" "$out/test/updates/$name-apart.plan" && { echo "$name: nothing was fused" >&2; exit 1; }
  compile $flags -o "$out/cpu.fb"
  "$build/bin/hydra-run" "$out/cpu.fb" --data data/tinyshakespeare.txt --tokenizer=bytes --seed 1 --eval-batches 1 --steps 3 \
    --save "$out/updates" > /dev/null 2>&1
  for part in model optimizer; do
    mv "$out/updates/step-00000003/$part.safetensors" "$out/test/updates/$name-$part.safetensors"
  done
  rm -r "$out/updates"
done << 'UPDATES'
odd --precision=bf16 --set L=1,D=136,H=2,Hk=2,F=200 --batch=2 --seq=36
few-sums --precision=bf16 --set L=1,D=192,H=3,Hk=3,F=320 --batch=1 --seq=5
many-sums --precision=bf16 --set L=1,D=320,H=5,Hk=5,F=832 --batch=4 --seq=333
eight --precision=fp8 --fp8-keep=none --fp8-least=1 --set L=1,D=320,H=5,Hk=5,F=832 --batch=4 --seq=92
eight-blocks --precision=fp8 --fp8-keep=none --fp8-least=1 --fp8-amax=delayed --set L=1,D=288,H=3,Hk=3,F=800 --batch=4 --seq=92
eight-rows --precision=fp8 --fp8-keep=none --fp8-least=1 --fp8-amax=delayed --fp8-format=e4m3 --set L=1,D=224,H=7,Hk=7,F=576 --batch=2 --seq=40
UPDATES
rm "$out/two-blocks.json"
# Launches of many arguments: rows of twelve parameters, and the gradients of 64 counted.
compile test/gpu/Inputs/parts.mlir --preset=wide --batch=2048 --precision=bf16 --no-clip --target=h200 -o "$out/test/parts.plan"
compile models/gpt2.mlir --preset=bytes --batch=2 --seq=64 --grad-histograms --target=h200 -o "$out/test/histograms.plan"
# The other families learn: on the GPU and, here, on the CPU; HYDRA also by a curriculum.
while read -r name flags; do
  compile $flags --preset=bytes --batch=8 --seq=128 --target=h200 -o "$out/test/$name.plan"
  compile $flags --preset=bytes --batch=8 --seq=128 -o "$out/cpu.fb"
  "$build/bin/hydra-run" "$out/cpu.fb" --data data/tinyshakespeare.txt --tokenizer=bytes --seed 1 --eval-batches 8 \
    --steps 200 2>&1 | grep held-out | tail -n 1 > "$out/test/$name.heldout"
done << 'LEARNERS'
llama-fp8 models/llama.mlir --precision=fp8
llama-blocks models/llama.mlir --precision=fp8 --fp8-scaling=block128
llama-delayed models/llama.mlir --precision=fp8 --fp8-amax=delayed --safe=off
llama-sweeps models/llama.mlir --precision=fp8 --fp8-amax=delayed --safe=off --disable-pass=hydra-keep-quantized
ttt models/ttt.mlir
megalodon models/megalodon.mlir
hydra models/hydra.mlir
curriculum models/hydra.mlir --set advantage=true --phase 60:mor=fixed,mod=dense,S=64 --phase 80:blend=true --scalar s=1,after=60,over=80,levels=10 --scalar warm=1,after=1,over=60
LEARNERS
rm "$out/cpu.fb"

# Programs that read on: what CPUs write, of one text and of several side by side; and the shapes of real models.
greedily() { # plan flags...: behind a prompt that is read in calls of several lengths
  local plan=$1
  shift
  compile "$@" --mode=generate --context=60 --target=h200 -o "$out/text/$plan.plan"
  compile "$@" --mode=generate --context=60 -o "$out/cpu.fb"
  "$build/bin/hydra-run" "$out/cpu.fb" --tokenizer=ids --seed 3 --tokens 30 --temperature 0 --generate "$(seq -s ' ' 26)" \
    > "$out/text/$plan.txt" 2>/dev/null
}
write() { # the same, and drawn in several ways
  greedily "$@"
  local plan=$1 name choice prompts=(--generate "$(seq -s ' ' 26)")
  [[ $plan == *-3 ]] && prompts+=(--generate "7 8 9 10 33" --generate 5)
  while read -r name choice; do
    "$build/bin/hydra-run" "$out/cpu.fb" --tokenizer=ids --seed 3 --tokens 30 $choice "${prompts[@]}" \
      > "$out/text/$plan.$name" 2>/dev/null
  done < "$out/text/choices"
}
cat > "$out/text/choices" << 'CHOICES'
drawn --temperature 0.9
top-k --temperature 2 --top-k 5
top-p --temperature 1.5 --top-p 0.7
min-p --temperature 2 --min-p 0.1
penalised --temperature 0 --repetition-penalty 2
all --temperature 1.5 --top-k 50 --top-p 0.9 --min-p 0.05 --repetition-penalty 1.3
CHOICES
while read -r name flags; do
  write "$name" $flags --batch=1 --prefill=16,6
  write "$name-3" $flags --batch=3 --prefill=7
done << 'WRITERS'
llama models/llama.mlir --preset=tiny
wide models/llama.mlir --preset=tiny --set V=128256
widest models/llama.mlir --preset=tiny --set V=262144
gpt2 models/gpt2.mlir --preset=tiny
megalodon models/megalodon.mlir --preset=ref
hydra models/hydra.mlir --preset=ref --set mod=dense
WRITERS
for golden in mistral gemma2 gemma3 qwen3 llama-llama3 phi3 gpt_neox; do
  "$build/bin/hydra-import" test/frontend/goldens/$golden -o "$out/model.mlir" > /dev/null
  write "$golden" "$out/model.mlir" --preset=$golden --batch=1 --prefill=16,6
  # On tensor cores, where blocks compute queries and keys.
  greedily "$golden-bf16" "$out/model.mlir" --preset=$golden --batch=1 --prefill=16,6 --precision=bf16
  greedily "$golden-bf16-2" "$out/model.mlir" --preset=$golden --batch=2 --prefill=7 --precision=bf16
done
while read -r name batch; do
  "$build/bin/hydra-import" tools/gpu/shapes/$name -o "$out/model.mlir" > /dev/null
  compile "$out/model.mlir" --preset=$name --mode=generate --batch=$batch --context=2048 --precision=bf16 --target=h200 \
    -o "$out/text/$name-$batch.fb"
done << 'ROWS'
Llama-3.2-1B 1
Llama-3.2-1B 32
Llama-2-7B 1
Qwen3-0.6B 1
ROWS
rm "$out/cpu.fb" "$out/model.mlir"

# The rows of docs/performance.md: name, as lm_rows.py has it; what is made again for less memory; model and sizes.
while read -r name savings flags; do
  [[ $name == *-clip ]] || flags="$flags --no-clip"
  for recompute in none ${savings//[-;]/ }; do
    compile $flags --precision=bf16 --target=h200 --recompute=$recompute -o "$out/bench/$name-$recompute.fb"
  done
done << 'ROWS'
small-4x128 rowwise models/cs336.mlir --preset=small --batch=4 --seq=128
small-4x1024 rowwise models/cs336.mlir --preset=small --batch=4 --seq=1024
small-4x1024-clip - models/cs336.mlir --preset=small --batch=4 --seq=1024
medium-4x512 rowwise;rowwise,every=3 models/cs336.mlir --preset=medium --batch=4 --seq=512
medium-16x256 - models/cs336.mlir --preset=medium --batch=16 --seq=256
large-4x512 - models/cs336.mlir --preset=large --batch=4 --seq=512
large-4x1024 - models/cs336.mlir --preset=large --batch=4 --seq=1024
xl-4x512 rowwise models/cs336.mlir --preset=xl --batch=4 --seq=512
xl-4x512-clip - models/cs336.mlir --preset=xl --batch=4 --seq=512
xl-2x1024 - models/cs336.mlir --preset=xl --batch=2 --seq=1024
2.7B-4x512 rowwise models/cs336.mlir --preset=2.7B --batch=4 --seq=512
2.7B-4x512-clip - models/cs336.mlir --preset=2.7B --batch=4 --seq=512
2.7B-4x1024 rowwise models/cs336.mlir --preset=2.7B --batch=4 --seq=1024
2.7B-16x1024 - models/cs336.mlir --preset=2.7B --batch=16 --seq=1024
small-32x1024-V50304 rowwise;rowwise,every=6 models/cs336.mlir --preset=small --set V=50304 --batch=32 --seq=1024
gpt2-124M-16x1024 - models/gpt2.mlir --preset=124M --batch=16 --seq=1024
llama-1b-4x2048 - models/llama.mlir --preset=llama-1b --batch=4 --seq=2048
ROWS
# The rows of the other families: name, model, sizes.
mkdir "$out/families"
while read -r name flags; do
  compile $flags --precision=bf16 --target=h200 --no-clip -o "$out/families/$name.fb"
done << 'ROWS'
hydra-dynamic-4x1024 models/hydra.mlir --preset=profile-100M-as-run --lr=1e-3 --batch=4 --seq=1024
hydra-masked-4x1024 models/hydra.mlir --preset=profile-100M-as-run --lr=1e-3 --routing=masked --batch=4 --seq=1024
hydra-static-4x1024 models/hydra.mlir --preset=profile-100M-as-run --lr=1e-3 --set mor=static --batch=4 --seq=1024
megalodon-1x512 models/megalodon.mlir --preset=profile-train --lr=1e-3 --batch=1 --seq=512
megalodon-1x2048 models/megalodon.mlir --preset=profile-train --lr=1e-3 --batch=1 --seq=2048
megalodon-1x8192 models/megalodon.mlir --preset=profile-train --lr=1e-3 --batch=1 --seq=8192
ttt-1x512 models/ttt.mlir --preset=bringup_1p3b --set V=256 --batch=1 --seq=512
ttt-1x2048 models/ttt.mlir --preset=bringup_1p3b --set V=256 --batch=1 --seq=2048
ttt-7b-1x8192 models/ttt.mlir --preset=bringup_1p3b --set V=256,D=4096,L=32,H=32,F=11008 --batch=1 --seq=8192 --recompute=every=2
deltanet-1x8192 models/deltanet.mlir --preset=1.3B --batch=1 --seq=8192
deltanet-additive-1x8192 models/deltanet.mlir --preset=1.3B --set rule=additive --batch=1 --seq=8192
experts-4x1024 test/gpu/Inputs/experts.mlir --preset=mixtral --batch=4 --seq=1024
experts-8x2048 test/gpu/Inputs/experts.mlir --preset=mixtral --batch=8 --seq=2048
ROWS
# Attention alone, as projections of narrow rows: batch heads key-heads seq width.
while read -r batch heads keys seq width; do
  compile tools/bench/attention.mlir --preset=one --set H="$heads",Hk="$keys",hd="$width" --batch="$batch" \
    --seq="$seq" --mode=grad --precision=bf16 --target=h200 -o "$out/attention/$batch-$heads-$keys-$seq-$width.fb"
done << 'SHAPES'
4 12 12 1024 64
16 16 16 1024 64
4 16 16 4096 64
1 16 16 16384 64
4 16 16 4096 128
4 32 8 4096 128
4 25 25 512 64
4 32 32 512 80
4 32 32 1024 80
32 12 12 1024 64
SHAPES
# Kernels bound by memory, alone.
for kernel in rms_norm rms_norm_backward softmax softmax_backward swiglu swiglu_backward; do
  compile test/gpu/Inputs/streaming.mlir --preset=wide --mode=forward --program=$kernel:$kernel --target=h200 \
    -o "$out/stream/$kernel.fb"
done
compile test/gpu/Inputs/streaming-adamw.mlir --preset=wide --mode=forward --program=adamw:adamw --target=h200 \
  -o "$out/stream/adamw.fb"
tar cJf "$build/gpu.tar.xz" -C "$build" gpu
ls -l "$build/gpu.tar.xz"
