# Call frame information from assembly, which compilers do not generate: every directive, and instructions by .cfi_escape.
    .text
    .globl written
    .type written, @function
written:
    .cfi_startproc
    .cfi_signal_frame
    .cfi_def_cfa %rsp, 64
    .cfi_offset %rbx, -24
    .cfi_rel_offset %rbp, 8
    nop
    .cfi_remember_state
    .cfi_undefined %rip
    .cfi_same_value %rbx
    .cfi_register %r12, %rax
    nop
    .cfi_restore_state
    .cfi_val_offset %rbp, -16
    .cfi_adjust_cfa_offset 24
    nop
    .cfi_def_cfa_register %rbp
    .cfi_restore %rbx
    nop
    .cfi_escape 0x0f, 3, 0x77, 8, 0x06              # CFA: breg7 8; deref
    .cfi_escape 0x10, 3, 4, 0x76, 0x70, 0x23, 8     # rbx at: breg6 -16; plus_uconst 8
    .cfi_escape 0x16, 12, 2, 0x77, 0                # r12 is: breg7 0
    nop
    .cfi_escape 0x12, 6, 0x7e                       # def_cfa_sf rbp, -2 * data alignment
    .cfi_escape 0x13, 0x7c                          # def_cfa_offset_sf -4
    .cfi_escape 0x11, 13, 2                         # offset_extended_sf r13, 2
    .cfi_escape 0x15, 14, 0x7f                      # val_offset_sf r14, -1
    .cfi_escape 0x2e, 16                            # GNU_args_size 16
    .skip 300
    .cfi_escape 0x05, 15, 9                         # offset_extended r15, 9
    .skip 70000
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size written, . - written

    .globl with_landing_pad
    .type with_landing_pad, @function
with_landing_pad:
    .cfi_startproc
    .cfi_personality 0x9b, pointer_to_personality
    .cfi_lsda 0x1b, data
    push %rbp
    .cfi_adjust_cfa_offset 8
    pop %rbp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size with_landing_pad, . - with_landing_pad

    .data
pointer_to_personality:
    .quad 0
data:
    .quad 0
    .section .note.GNU-stack, "", @progbits
