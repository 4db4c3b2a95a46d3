// Hand-written functions with call frame information, and a return-from-signal trampoline without it.
        .text
        .globl  assembly_pushes
        .type   assembly_pushes, %function
assembly_pushes:
        .cfi_startproc
        sub     sp, sp, #48
        .cfi_adjust_cfa_offset 48
        str     x30, [sp, #40]
        .cfi_rel_offset x30, 40
        str     x19, [sp, #8]
        .cfi_rel_offset x19, 8
        mov     w19, w0
        bl      leaf
        add     w0, w0, w19
        ldr     x19, [sp, #8]
        .cfi_restore x19
        ldr     x30, [sp, #40]
        .cfi_restore x30
        add     sp, sp, #48
        .cfi_adjust_cfa_offset -48
        ret
        .cfi_endproc
        .size   assembly_pushes, .-assembly_pushes

// The return address and the CFA move to other registers.
        .globl  assembly_moves_cfa
        .type   assembly_moves_cfa, %function
assembly_moves_cfa:
        .cfi_startproc
        stp     x20, x21, [sp, #-32]!
        .cfi_adjust_cfa_offset 32
        .cfi_rel_offset x20, 0
        .cfi_rel_offset x21, 8
        mov     x20, x30
        .cfi_register x30, x20
        mov     x21, sp
        .cfi_def_cfa_register x21
        sub     sp, sp, #112
        bl      leaf
        mov     sp, x21
        .cfi_def_cfa_register sp
        mov     x30, x20
        .cfi_restore x30
        ldp     x20, x21, [sp], #32
        .cfi_restore x20
        .cfi_restore x21
        .cfi_adjust_cfa_offset -32
        ret
        .cfi_endproc
        .size   assembly_moves_cfa, .-assembly_moves_cfa

// The return address is signed while it is on the stack.
        .globl  assembly_calls
        .type   assembly_calls, %function
assembly_calls:
        .cfi_startproc
        hint    25                              // paciasp
        .cfi_negate_ra_state
        stp     x29, x30, [sp, #-16]!
        .cfi_adjust_cfa_offset 16
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        mov     x2, x0
        mov     w0, w1
        blr     x2
        ldp     x29, x30, [sp], #16
        .cfi_adjust_cfa_offset -16
        .cfi_restore x29
        .cfi_restore x30
        hint    29                              // autiasp
        .cfi_negate_ra_state
        ret
        .cfi_endproc
        .size   assembly_calls, .-assembly_calls

        .globl  return_from_signal
        .type   return_from_signal, %function
        nop                                     // not in a function with a table
return_from_signal:
        mov     x8, #139
        svc     #0
        .size   return_from_signal, .-return_from_signal
        .section .note.GNU-stack, "", %progbits
