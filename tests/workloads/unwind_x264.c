/* Encodes generated frames with libx264, whose hot functions are assembly without unwind tables. It uses the functions
 * for SSE4.2, so that every CPU runs the same ones. Usage: unwind_x264 SECONDS of CPU time */
#include <stdint.h>
#include <stdlib.h>
#include <x264.h>

#include "unwind_burn.h"

int main(int argc, char** argv) {
    const uint64_t end = cpu_ns() + (uint64_t)(atof(argc > 1 ? argv[1] : "3") * 1e9);
    const int width = 640, height = 360;
    x264_param_t options;
    if (x264_param_default_preset(&options, "medium", NULL) != 0) return 1;
    options.i_width = width;
    options.i_height = height;
    options.i_csp = X264_CSP_I420;
    options.i_threads = 1;
    options.cpu = X264_CPU_MMX | X264_CPU_MMX2 | X264_CPU_SSE | X264_CPU_SSE2 | X264_CPU_SSE3 | X264_CPU_SSSE3 |
                  X264_CPU_SSE4 | X264_CPU_SSE42;
    options.i_log_level = X264_LOG_ERROR;
    options.i_fps_num = 25;
    options.i_fps_den = 1;
    x264_t* encoder = x264_encoder_open(&options);
    x264_picture_t in, out;
    if (encoder == NULL || x264_picture_alloc(&in, X264_CSP_I420, width, height) != 0) return 1;
    uint32_t noise = 1;
    for (int frame = 0; cpu_ns() < end; ++frame) {
        for (int plane = 0; plane < 3; ++plane) {
            const int shift = plane == 0 ? 0 : 1;
            for (int y = 0; y < height >> shift; ++y)
                for (int x = 0; x < width >> shift; ++x) {
                    noise = noise * 1664525 + 1013904223;
                    const int value = (x + 3 * frame) * (y + frame) / 16 + (int)(noise >> 28);
                    in.img.plane[plane][y * in.img.i_stride[plane] + x] = (uint8_t)value;
                }
        }
        in.i_pts = frame;
        x264_nal_t* packets;
        int count;
        if (x264_encoder_encode(encoder, &packets, &count, &in, &out) < 0) return 1;
    }
    x264_encoder_close(encoder);
    return 0;
}
