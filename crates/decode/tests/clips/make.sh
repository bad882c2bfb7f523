#!/bin/sh
# Makes the clips of this folder anew, with the ffmpeg program on the PATH. See README.md.
set -eu
cd "$(dirname "$0")"
export SVT_LOG=0
ff() { ffmpeg -nostdin -v error -y -fflags +bitexact "$@"; }

# A moving picture with its own number N burned in: eight blocks of 8x8 pixels along the top are the bits of N, lowest first, white for 1.
src() {
  printf 'testsrc2=s=%s:r=10:d=%s,format=yuv420p,' "$1" "$2"
  printf "geq=lum='if(lt(Y\,8)\,16+219*mod(floor(N/pow(2\,floor(X/8)))\,2)\,lum(X\,Y))'"
  printf ":cb='if(lt(Y\,4)\,128\,cb(X\,Y))':cr='if(lt(Y\,4)\,128\,cr(X\,Y))'"
}
x264="-c:v libx264 -threads 1 -flags:v +bitexact"
x265() { printf -- '-c:v libx265 -tag:v hvc1 -x265-params log-level=none:pools=none:frame-threads=1:info=0:%s' "$1"; }

# H.264 with B-frames, closed GOPs of 20: the base of the next three.
ff -f lavfi -i "$(src 64x48 4)" $x264 -g 20 b_frames.mp4
# Its clock starts at 5 s (an empty edit).
ff -i b_frames.mp4 -c copy -output_ts_offset 5 offset.mp4
# An edit list that cuts into a GOP: the keyframe is decoded and not shown.
ff -ss 0.55 -i b_frames.mp4 -c copy cut.mp4
# Fragmented: no sample table, but moof boxes.
ff -i b_frames.mp4 -c copy -movflags frag_keyframe+empty_moov+default_base_moof fragmented.mp4
# The sample table in front, so that a file cut short still has it.
ff -i b_frames.mp4 -c copy -movflags faststart faststart.mp4
# Open GOPs: keyframes that are no IDR, with leading pictures, which in the second clip refer to each other.
ff -f lavfi -i "$(src 64x48 4)" $x264 -x264-params open-gop=1:keyint=10:min-keyint=10:bframes=3:scenecut=0:b-pyramid=none open_gop.mp4
ff -f lavfi -i "$(src 64x48 4)" $x264 \
  -x264-params open-gop=1:keyint=10:min-keyint=10:bframes=5:b-adapt=0:scenecut=0:b-pyramid=normal:ref=4 open_gop_pyramid.mp4
# HEVC with CRA keyframes and skipped leading pictures (x265's default).
ff -f lavfi -i "$(src 64x48 4)" $(x265 open-gop=1:keyint=10:min-keyint=10:bframes=4:scenecut=0) hevc_cra.mp4
# AV1, a keyframe every second frame, as lerobot writes.
ff -f lavfi -i "$(src 64x64 2)" -c:v libsvtav1 -g 2 -crf 40 -preset 8 -svtav1-params lp=1 av1_g2.mp4
# 10 bits.
ff -f lavfi -i "$(src 64x48 1)" $x264 -pix_fmt yuv420p10le h264_10bit.mp4
ff -f lavfi -i "$(src 64x48 1)" $(x265 bframes=2) -pix_fmt yuv420p10le hevc_10bit.mp4
# Odd sides.
ff -f lavfi -i "$(src 66x50 1),crop=65:49:0:0:exact=1" -c:v libvpx-vp9 -threads 1 -b:v 0 -crf 40 odd_vp9.mp4
ff -f lavfi -i "$(src 66x50 1),format=yuv444p,crop=65:49:0:0:exact=1" $x264 odd_h264_444.mp4
# Uneven times: frames 3, 4 and 9 are dropped.
ff -f lavfi -i "$(src 64x48 2),select='not(eq(n\,3)+eq(n\,4)+eq(n\,9))'" -fps_mode passthrough $x264 -g 8 uneven.mp4
# 200 episodes of 7 to 17 frames in one file: 2,399 frames, at 30 and at 30000/1001 frames a second. A flat gray counts them in
# base 16: the left half the low digit, the right half's upper part the middle one, its lower part the high one.
for rate in 30 30000/1001; do
  ff -f lavfi -i "color=s=32x16:r=$rate:d=82,format=gray,geq=lum='20+14*if(lt(X\,16)\,mod(N\,16)\,if(lt(Y\,8)\,mod(floor(N/16)\,16)\,floor(N/256)))'" \
    -frames:v 2399 $x264 -preset veryslow -g 60 -crf 24 "long_$(echo $rate | tr / _).mp4"
done

# Depth: four frames of the constant codes 64, 1024, 2048 and 4032; and a slope of codes within each of six frames. Both lossless.
ff -f lavfi -i "color=s=64x48:r=10:d=0.4,format=gray12le,geq=lum='if(eq(N\,0)\,64\,if(eq(N\,1)\,1024\,if(eq(N\,2)\,2048\,4032)))'" \
  $(x265 lossless=1) depth.mp4
ff -f lavfi -i "color=s=66x50:r=10:d=0.6,format=gray12le,geq=lum='mod(X*60+Y*7+N*300\,4096)'" $(x265 lossless=1) depth_slope.mp4

# Red, green, blue and gray quarters, under each tagging of range and matrix, and under none (BT.601, limited).
quarters="color=black:s=64x48:r=10:d=0.2,format=rgb24,geq=r='if(lt(Y\,24)\,if(lt(X\,32)\,200\,20)\,if(lt(X\,32)\,30\,128))'"
quarters="$quarters:g='if(lt(Y\,24)\,if(lt(X\,32)\,30\,180)\,if(lt(X\,32)\,40\,128))':b='if(lt(Y\,24)\,if(lt(X\,32)\,40\,60)\,if(lt(X\,32)\,210\,128))'"
for matrix in bt709 smpte170m; do for range in tv pc; do
  ff -f lavfi -i "$quarters,scale=out_color_matrix=$matrix:out_range=$range:flags=accurate_rnd,format=yuv420p" \
    $x264 -qp 1 -colorspace $matrix -color_range $range "color_${matrix}_$range.mp4"
done; done
ff -f lavfi -i "$quarters,scale=out_color_matrix=smpte170m:out_range=tv:flags=accurate_rnd,format=yuv420p" $x264 -qp 1 color_untagged.mp4

# A picture that is no video: one red pixel, one blue.
ff -f lavfi -i "color=red:s=2x1,format=rgb24,geq=r='255*eq(X\,0)':g=0:b='255*eq(X\,1)'" -frames:v 1 two_by_one.png
